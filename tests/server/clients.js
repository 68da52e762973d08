// npm's `redis` (Debian: node-redis) speaks BF and CF to the module. Prints
// "ok", or fails. Usage: node clients.js PORT
const assert = require('assert');
const { createClient } = require('redis');

async function bloom(client) {
  assert.strictEqual(await client.bf.reserve('mybloom', 0.01, 1000), 'OK');
  await assert.rejects(client.bf.reserve('mybloom', 0.01, 1000), /item exists/);
  assert.deepStrictEqual(
    await Promise.all(['leibale', 'simon', 'guy'].map((i) => client.bf.add('mybloom', i))),
    [true, true, true]);
  assert.deepStrictEqual(await client.bf.mAdd('mybloom', ['kaitlyn', 'guy']), [true, false]);
  assert.strictEqual(await client.bf.exists('mybloom', 'simon'), true);
  assert.strictEqual(await client.bf.exists('mybloom', 'nobody'), false);
  assert.deepStrictEqual(await client.bf.mExists('mybloom', ['simon', 'lance']), [true, false]);
  const info = await client.bf.info('mybloom');
  assert.strictEqual(info.capacity, 1000);
  assert.strictEqual(info.numberOfFilters, 1);
  assert.strictEqual(info.numberOfInsertedItems, 4);
  assert.strictEqual(info.expansionRate, 2);
  assert.ok(info.size > 1000);
  assert.deepStrictEqual(
    await client.bf.insert('other', ['a', 'b', 'a'], { CAPACITY: 100, ERROR: 0.001 }),
    [true, true, false]);
  let dump = await client.bf.scanDump('other', 0);
  assert.ok(dump.iterator > 0);
}

async function cuckoo(client) {
  assert.strictEqual(await client.cf.reserve('mycuckoo', 10000), 'OK');
  assert.strictEqual(await client.cf.add('mycuckoo', 'a'), true);
  assert.strictEqual(await client.cf.addNX('mycuckoo', 'a'), false);
  assert.deepStrictEqual(await client.cf.insert('mycuckoo', ['a', 'b']), [true, true]);
  assert.deepStrictEqual(await client.cf.insertNX('mycuckoo', ['a', 'c']), [false, true]);
  assert.strictEqual(await client.cf.count('mycuckoo', 'a'), 2);
  assert.strictEqual(await client.cf.exists('mycuckoo', 'b'), true);
  assert.strictEqual(await client.cf.del('mycuckoo', 'b'), true);
  assert.strictEqual(await client.cf.exists('mycuckoo', 'b'), false);
  const info = await client.cf.info('mycuckoo');
  assert.strictEqual(info.numberOfFilters, 1);
  assert.strictEqual(info.numberOfInsertedItems, 3);
  assert.strictEqual(info.numberOfDeletedItems, 1);
  assert.strictEqual(info.bucketSize, 2);
  assert.strictEqual(info.expansionRate, 1);
  assert.strictEqual(info.maxIteration, 20);
}

(async () => {
  const client = createClient({ socket: { port: Number(process.argv[2]) } });
  await client.connect();
  await bloom(client);
  await cuckoo(client);
  await client.quit();
  console.log('ok');
})().catch((error) => {
  console.error(error);
  process.exit(1);
});
