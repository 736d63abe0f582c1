package dbt.ducklake.encryption;

import java.io.ByteArrayInputStream;
import java.io.ByteArrayOutputStream;
import java.io.IOException;
import org.apache.hadoop.fs.FSDataInputStream;
import org.apache.parquet.format.PageHeader;
import org.apache.parquet.format.Util;

/**
 * The pages of a column chunk, one after the other, each as long as it is encrypted.
 *
 * <p>A field that no reader knows, and so each skips, makes the plain header of a page longer by what encryption adds.
 */
final class DecryptedPages {
  private static final byte STOP = 0;
  private static final byte BINARY = 8;
  /** The id of the field that fills a header. */
  private static final int FILLER_ID = 16_000;

  private final FSDataInputStream source;
  private final Modules modules;
  private long start;
  private byte[] bytes = new byte[0];

  DecryptedPages(FSDataInputStream source, Modules modules, long start) {
    this.source = source;
    this.modules = modules;
    this.start = start;
  }

  /** Where the page stands in the file, both encrypted and decrypted. */
  long start() {
    return start;
  }

  long end() {
    return start + bytes.length;
  }

  byte[] bytes() {
    return bytes;
  }

  /** Goes on to the next page. */
  void next() throws IOException {
    start = end();
    byte[] encryptedHeader = readModule(start);
    byte[] encryptedData = readModule(start + encryptedHeader.length);
    PageHeader header = Util.readPageHeader(new ByteArrayInputStream(modules.decrypt(encryptedHeader, 0)));
    byte[] data = modules.decrypt(encryptedData, 0);
    header.setCompressed_page_size(data.length);
    bytes = new byte[encryptedHeader.length + encryptedData.length];
    int headerLength = bytes.length - data.length;
    System.arraycopy(filled(header, headerLength), 0, bytes, 0, headerLength);
    System.arraycopy(data, 0, bytes, headerLength, data.length);
  }

  private byte[] readModule(long at) throws IOException {
    byte[] length = new byte[Modules.LENGTH_BYTES];
    source.readFully(at, length);
    byte[] module = java.util.Arrays.copyOf(length, Modules.LENGTH_BYTES + modules.length(length, 0));
    source.readFully(at + Modules.LENGTH_BYTES, module, Modules.LENGTH_BYTES, module.length - Modules.LENGTH_BYTES);
    return module;
  }

  /** The header in so many bytes. */
  private byte[] filled(PageHeader header, int length) throws IOException {
    ByteArrayOutputStream out = new ByteArrayOutputStream(length);
    Util.writePageHeader(header, out);
    byte[] plain = out.toByteArray();
    out.reset();
    out.write(plain, 0, plain.length - 1);
    out.write(BINARY);
    writeNumber(out, 2 * FILLER_ID); // zigzag: doubled
    int filler = length - 1 - out.size();
    filler -= filler - 1 < 128 ? 1 : 2; // its own length stands before it
    writeNumber(out, filler);
    out.write(new byte[filler]);
    out.write(STOP);
    if (out.size() != length) {
      throw modules.damaged("a page header of " + plain.length + " bytes in " + length, null);
    }
    return out.toByteArray();
  }

  private static void writeNumber(ByteArrayOutputStream out, int value) {
    int rest = value;
    for (; rest >= 128; rest >>>= 7) {
      out.write(rest & 127 | 128);
    }
    out.write(rest);
  }
}
