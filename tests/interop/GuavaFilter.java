// GuavaFilter.java - Guava's own BloomFilter, on the command line.
//
//   java GuavaFilter.java build FUNNEL N P FILE < KEYS
//   java GuavaFilter.java check FUNNEL FILE < KEYS     prints the keys that it might contain
//   java GuavaFilter.java time  FUNNEL FILE < KEYS     prints ns per mightContain()
//
// FUNNEL: bytes (keys are hex, one a line, - is the empty key), utf8, utf16 (text) or
// i64 (decimal numbers).
import com.google.common.hash.BloomFilter;
import com.google.common.hash.Funnel;
import com.google.common.hash.Funnels;
import java.io.BufferedReader;
import java.io.FileInputStream;
import java.io.FileOutputStream;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.List;

public class GuavaFilter {
    static byte[] fromHex(String line) {
        if (line.equals("-")) return new byte[0];
        byte[] key = new byte[line.length() / 2];
        for (int i = 0; i < key.length; i++)
            key[i] = (byte) Integer.parseInt(line.substring(2 * i, 2 * i + 2), 16);
        return key;
    }

    static Object key(String funnel, String line) {
        if (funnel.equals("bytes")) return fromHex(line);
        if (funnel.equals("i64")) return Long.valueOf(line);
        return line;
    }

    static Funnel<?> funnel(String name) {
        switch (name) {
            case "bytes": return Funnels.byteArrayFunnel();
            case "utf8": return Funnels.stringFunnel(StandardCharsets.UTF_8);
            case "utf16": return Funnels.unencodedCharsFunnel();
            default: return Funnels.longFunnel();
        }
    }

    @SuppressWarnings("unchecked")
    public static void main(String[] args) throws Exception {
        Funnel<Object> f = (Funnel<Object>) (Object) funnel(args[1]);
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        List<String> lines = new ArrayList<>();
        List<Object> keys = new ArrayList<>();
        for (String line; (line = in.readLine()) != null; ) {
            lines.add(line);
            keys.add(key(args[1], line));
        }
        if (args[0].equals("build")) {
            BloomFilter<Object> b =
                BloomFilter.create(f, Long.parseLong(args[2]), Double.parseDouble(args[3]));
            for (Object k : keys) b.put(k);
            try (FileOutputStream out = new FileOutputStream(args[4])) { b.writeTo(out); }
            return;
        }
        BloomFilter<Object> b;
        try (FileInputStream file = new FileInputStream(args[2])) { b = BloomFilter.readFrom(file, f); }
        if (args[0].equals("check")) {
            PrintStream out = new PrintStream(System.out, false, "UTF-8");
            for (int i = 0; i < keys.size(); i++)
                if (b.mightContain(keys.get(i))) out.println(lines.get(i));
            out.flush();
            return;
        }
        final int piece = 2048;
        Object[] all = keys.toArray();
        long[] best = new long[all.length / piece + 1];
        java.util.Arrays.fill(best, Long.MAX_VALUE);
        int found = 0;
        for (int round = 0; round < 40; round++)
            for (int at = 0; at < all.length; at += piece) {
                int end = Math.min(all.length, at + piece);
                long start = System.nanoTime();
                for (int i = at; i < end; i++) if (b.mightContain(all[i])) found++;
                best[at / piece] = Math.min(best[at / piece], System.nanoTime() - start);
            }
        double sum = 0;
        for (int at = 0; at < all.length; at += piece) sum += best[at / piece];
        System.out.printf("%.1f%n", sum / all.length);
        System.exit(found > 0 ? 0 : 1);
    }
}
