// npm's `redis` (Debian: node-redis) speaks BF and CF to the module, as its
// documentation shows it. Prints "ok", or fails.
// Usage: node clients.js PORT [2|3]     the protocol, for versions that have both
const assert = require('assert');
const { createClient } = require('redis');

// Version 4 gives the fields of INFO names of its own; later ones the server's.
const NAMES = {
  'Capacity': 'capacity', 'Size': 'size', 'Number of filters': 'numberOfFilters',
  'Number of items inserted': 'numberOfInsertedItems',
  'Number of items deleted': 'numberOfDeletedItems', 'Expansion rate': 'expansionRate',
  'Bucket size': 'bucketSize', 'Max iterations': 'maxIteration',
};
const field = (info, name) => (name in info ? info[name] : info[NAMES[name]]);

async function copyAll(commands, from, to, chunks) {
  let dump = await commands.scanDump(from, 0);
  assert.ok(dump.iterator > 0);
  while (dump.iterator !== 0) {
    await chunks(to, dump.iterator, dump.chunk);
    dump = await commands.scanDump(from, dump.iterator);
  }
}

async function bloom(client, binary) {
  assert.strictEqual(await client.bf.reserve('mybloom', 0.01, 1000), 'OK');
  await assert.rejects(client.bf.reserve('mybloom', 0.01, 1000), /item exists/);
  assert.deepStrictEqual(
    await Promise.all(['leibale', 'simon', 'guy'].map((i) => client.bf.add('mybloom', i))),
    [true, true, true]);
  assert.deepStrictEqual(await client.bf.mAdd('mybloom', ['kaitlyn', 'guy']), [true, false]);
  assert.strictEqual(await client.bf.exists('mybloom', 'simon'), true);
  assert.strictEqual(await client.bf.exists('mybloom', 'nobody'), false);
  assert.deepStrictEqual(await client.bf.mExists('mybloom', ['simon', 'lance']), [true, false]);
  if (client.bf.card) assert.strictEqual(await client.bf.card('mybloom'), 4);
  const info = await client.bf.info('mybloom');
  assert.strictEqual(field(info, 'Capacity'), 1000);
  assert.strictEqual(field(info, 'Number of filters'), 1);
  assert.strictEqual(field(info, 'Number of items inserted'), 4);
  assert.strictEqual(field(info, 'Expansion rate'), 2);
  assert.ok(field(info, 'Size') > 1000);
  assert.strictEqual(
    await client.bf.reserve('fixed', 0.01, 1000, { NONSCALING: true }), 'OK');
  assert.strictEqual(field(await client.bf.info('fixed'), 'Expansion rate'), null);
  assert.strictEqual(await client.bf.reserve('wide', 0.01, 1000, { EXPANSION: 4 }), 'OK');
  assert.strictEqual(field(await client.bf.info('wide'), 'Expansion rate'), 4);
  assert.deepStrictEqual(
    await client.bf.insert('other', ['a', 'b', 'a'], { CAPACITY: 100, ERROR: 0.001 }),
    [true, true, false]);
  assert.deepStrictEqual(await client.bf.insert('other', 'c', { NOCREATE: true }), [true]);
  await assert.rejects(client.bf.insert('nothing', 'c', { NOCREATE: true }), /not found/);
  if (!binary) return;
  await copyAll(binary.bf, 'other', 'copy', (key, i, chunk) => binary.bf.loadChunk(key, i, chunk));
  assert.deepStrictEqual(await client.bf.mExists('copy', ['a', 'b', 'c', 'd']),
    [true, true, true, false]);
}

async function cuckoo(client, binary) {
  assert.strictEqual(await client.cf.reserve('mycuckoo', 10000), 'OK');
  assert.strictEqual(await client.cf.add('mycuckoo', 'a'), true);
  assert.strictEqual(await client.cf.addNX('mycuckoo', 'a'), false);
  assert.deepStrictEqual(await client.cf.insert('mycuckoo', ['a', 'b']), [true, true]);
  // Numbers, because -1 is one of them; version 4 makes them booleans.
  assert.deepStrictEqual((await client.cf.insertNX('mycuckoo', ['a', 'c'])).map(Number), [0, 1]);
  assert.strictEqual(await client.cf.count('mycuckoo', 'a'), 2);
  assert.strictEqual(await client.cf.exists('mycuckoo', 'b'), true);
  assert.strictEqual(await client.cf.del('mycuckoo', 'b'), true);
  assert.strictEqual(await client.cf.exists('mycuckoo', 'b'), false);
  const info = await client.cf.info('mycuckoo');
  assert.strictEqual(field(info, 'Number of filters'), 1);
  assert.strictEqual(field(info, 'Number of items inserted'), 3);
  assert.strictEqual(field(info, 'Number of items deleted'), 1);
  assert.strictEqual(field(info, 'Bucket size'), 2);
  assert.strictEqual(field(info, 'Expansion rate'), 1);
  assert.strictEqual(field(info, 'Max iterations'), 20);
  if (!binary) return;
  await copyAll(binary.cf, 'mycuckoo', 'ccopy', (key, i, chunk) => binary.cf.loadChunk(key, i, chunk));
  assert.strictEqual(await client.cf.count('ccopy', 'a'), 2);
}

// Chunks are bytes, not text: version 4 cannot be told so, later ones can.
function binaryOf(client, protocol) {
  if (!protocol) return null;
  const { RESP_TYPES } = require('redis');
  return client.withTypeMapping({ [RESP_TYPES.BLOB_STRING]: Buffer });
}

(async () => {
  const [port, protocol] = process.argv.slice(2).map(Number);
  const client = createClient({ socket: { port }, ...(protocol ? { RESP: protocol } : {}) });
  await client.connect();
  const binary = binaryOf(client, protocol);
  await bloom(client, binary);
  await cuckoo(client, binary);
  await client.quit();
  console.log('ok');
})().catch((error) => {
  console.error(error);
  process.exit(1);
});
