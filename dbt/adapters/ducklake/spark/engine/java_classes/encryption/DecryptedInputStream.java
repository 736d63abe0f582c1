package dbt.ducklake.encryption;

import java.io.EOFException;
import java.io.IOException;
import java.util.Arrays;
import java.util.Map;
import java.util.TreeMap;
import org.apache.hadoop.fs.FSDataInputStream;
import org.apache.hadoop.fs.FSInputStream;
import org.apache.parquet.format.ColumnChunk;
import org.apache.parquet.format.ColumnMetaData;
import org.apache.parquet.format.FileMetaData;
import org.apache.parquet.format.RowGroup;

/**
 * An encrypted Parquet file as a plain one of the same length, in which every page begins where it did.
 *
 * <p>So the length that a file system knows is right, and a page is found without the ones before it. Between the pages
 * and the footer there are zeros, where no reader looks.
 */
final class DecryptedInputStream extends FSInputStream {
  private final FSDataInputStream encrypted;
  private final long length;
  private final Modules modules;
  private final byte[] footer;
  /** Where column chunks end, by where they begin. */
  private final TreeMap<Long, Long> chunks = new TreeMap<>();

  private DecryptedPages pages;
  private long position = 0;

  DecryptedInputStream(FSDataInputStream encrypted, long length, Modules modules) throws IOException {
    this.encrypted = encrypted;
    this.length = length;
    this.modules = modules;
    FileMetaData metadata = EncryptedFooter.read(encrypted, length, modules);
    for (RowGroup rowGroup : metadata.getRow_groups()) {
      for (ColumnChunk column : rowGroup.getColumns()) {
        ColumnMetaData chunk = column.getMeta_data();
        long start = firstPage(chunk);
        chunks.put(start, start + chunk.getTotal_compressed_size());
      }
    }
    this.footer = EncryptedFooter.plain(metadata);
    if (!chunks.isEmpty() && chunks.lastEntry().getValue() > length - footer.length) {
      throw modules.damaged("a footer that reaches into the pages", null);
    }
  }

  static long firstPage(ColumnMetaData chunk) {
    long dictionary = chunk.isSetDictionary_page_offset() ? chunk.getDictionary_page_offset() : 0;
    return dictionary > 0 ? Math.min(dictionary, chunk.getData_page_offset()) : chunk.getData_page_offset();
  }

  @Override
  public void seek(long newPosition) throws EOFException {
    if (newPosition < 0 || newPosition > length) {
      throw new EOFException("position " + newPosition + " of " + length);
    }
    position = newPosition;
  }

  @Override
  public long getPos() {
    return position;
  }

  @Override
  public boolean seekToNewSource(long targetPosition) {
    return false;
  }

  @Override
  public int available() {
    return (int) Math.min(Integer.MAX_VALUE, length - position);
  }

  @Override
  public int read() throws IOException {
    byte[] one = new byte[1];
    return read(one, 0, 1) < 0 ? -1 : one[0] & 0xff;
  }

  @Override
  public synchronized int read(byte[] buffer, int offset, int count) throws IOException {
    if (count == 0) {
      return 0;
    }
    if (position >= length) {
      return -1;
    }
    int read = readSome(buffer, offset, count);
    position += read;
    return read;
  }

  private int readSome(byte[] buffer, int offset, int count) throws IOException {
    if (position < EncryptedFooter.MAGIC.length) {
      return copy(EncryptedFooter.MAGIC, 0, buffer, offset, count);
    }
    long footerStart = length - footer.length;
    if (position >= footerStart) {
      return copy(footer, footerStart, buffer, offset, count);
    }
    Map.Entry<Long, Long> chunk = chunks.floorEntry(position);
    if (chunk == null || position >= chunk.getValue()) {
      Long next = chunks.higherKey(position);
      int zeros = (int) Math.min(count, (next == null ? footerStart : next) - position);
      Arrays.fill(buffer, offset, offset + zeros, (byte) 0);
      return zeros;
    }
    if (pages == null || pages.chunkStart() != chunk.getKey() || position < pages.start()) {
      pages = new DecryptedPages(encrypted, modules, chunk.getKey(), chunk.getValue());
    }
    while (position >= pages.end()) {
      pages.next();
    }
    return copy(pages.bytes(), pages.start(), buffer, offset, count);
  }

  /** Copies bytes that begin at a position of the file, as many as there are. */
  private int copy(byte[] bytes, long start, byte[] buffer, int offset, int count) {
    int skipped = (int) (position - start);
    int copied = Math.min(count, bytes.length - skipped);
    System.arraycopy(bytes, skipped, buffer, offset, copied);
    return copied;
  }

  @Override
  public void close() throws IOException {
    encrypted.close();
  }
}
