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
  /** So much is read at once, since an object store answers each read with a request. */
  private static final int BLOCK_BYTES = 4 << 20;

  private final FSDataInputStream source;
  private final Modules modules;
  private final long chunkStart;
  private final long chunkEnd;
  /** Encrypted bytes of the chunk, and where they stand in the file. */
  private byte[] block = new byte[0];

  private long blockStart;
  private long start;
  private byte[] bytes = new byte[0];

  DecryptedPages(FSDataInputStream source, Modules modules, long chunkStart, long chunkEnd) {
    this.source = source;
    this.modules = modules;
    this.chunkStart = chunkStart;
    this.chunkEnd = chunkEnd;
    this.start = chunkStart;
  }

  long chunkStart() {
    return chunkStart;
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
    int encryptedHeaderLength = moduleLength(start);
    byte[] plainHeader = modules.decrypt(block, offset(start));
    long dataStart = start + encryptedHeaderLength;
    int encryptedDataLength = moduleLength(dataStart);
    byte[] data = modules.decrypt(block, offset(dataStart));
    PageHeader header = Util.readPageHeader(new ByteArrayInputStream(plainHeader));
    header.setCompressed_page_size(data.length);
    bytes = new byte[encryptedHeaderLength + encryptedDataLength];
    int headerLength = bytes.length - data.length;
    System.arraycopy(filled(header, headerLength), 0, bytes, 0, headerLength);
    System.arraycopy(data, 0, bytes, headerLength, data.length);
  }

  /** The length of the module at a position, after which the block has all of it. */
  private int moduleLength(long at) throws IOException {
    load(at, Modules.LENGTH_BYTES);
    int length = Modules.LENGTH_BYTES + modules.length(block, offset(at));
    load(at, length);
    return length;
  }

  private int offset(long at) {
    return (int) (at - blockStart);
  }

  /** Lets the block have so many bytes at a position. */
  private void load(long at, int count) throws IOException {
    if (at >= blockStart && at + count <= blockStart + block.length) {
      return;
    }
    if (at + count > chunkEnd) {
      throw modules.damaged("a page that reaches beyond its column chunk", null);
    }
    block = new byte[(int) Math.min(Math.max(count, BLOCK_BYTES), chunkEnd - at)];
    blockStart = at;
    source.readFully(at, block);
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
