package dbt.ducklake.encryption;

import java.io.ByteArrayInputStream;
import java.io.IOException;
import java.io.OutputStream;
import java.util.Arrays;
import java.util.TreeMap;
import org.apache.parquet.format.ColumnChunk;
import org.apache.parquet.format.ColumnMetaData;
import org.apache.parquet.format.FileMetaData;
import org.apache.parquet.format.PageHeader;
import org.apache.parquet.format.RowGroup;
import org.apache.parquet.format.Util;

/**
 * Encrypts a Parquet file while it is written, page by page.
 *
 * <p>A writer appends the magic bytes, the pages of all column chunks, indexes, the footer. Each page goes on encrypted
 * as soon as it is complete. Indexes are left out. The footer then says where the encrypted pages stand.
 */
final class EncryptingOutputStream extends OutputStream {
  /** The head of the first two fields of a page header, both 32 bits. The footer begins with a number and a list. */
  private static final byte INT_FIELD = 0x15;

  private final OutputStream encrypted;
  private final Modules modules;

  /** The bytes that were written and did not go on yet. */
  private byte[] pending = new byte[1 << 16];
  private int pendingStart = 0;
  private int pendingEnd = 0;

  /** How many bytes were needed to go on, when that was last tried. */
  private int needed = EncryptedFooter.MAGIC.length;
  private boolean hasMagic = false;
  /** Whether all pages were written: the rest is indexes and the footer. */
  private boolean hasAllPages = false;
  private boolean isClosed = false;

  private long plainPosition = 0;
  private long encryptedPosition = 0;
  /** Where each page begins, encrypted, by where it does in the plain file; and where the last one ends. */
  private final TreeMap<Long, Long> encryptedStarts = new TreeMap<>();

  EncryptingOutputStream(OutputStream encrypted, Modules modules) {
    this.encrypted = encrypted;
    this.modules = modules;
  }

  @Override
  public void write(int b) throws IOException {
    write(new byte[] {(byte) b}, 0, 1);
  }

  @Override
  public void write(byte[] bytes, int offset, int count) throws IOException {
    makeRoom(count);
    System.arraycopy(bytes, offset, pending, pendingEnd, count);
    pendingEnd += count;
    while (!hasAllPages && pendingEnd - pendingStart >= needed && writePending()) {}
  }

  private void makeRoom(int count) {
    if (pendingEnd + count <= pending.length) {
      return;
    }
    int length = pendingEnd - pendingStart;
    byte[] target = length + count <= pending.length ? pending : new byte[Math.max(2 * length, length + count)];
    System.arraycopy(pending, pendingStart, target, 0, length);
    pending = target;
    pendingStart = 0;
    pendingEnd = length;
  }

  /** Writes the next part of the file. Returns false if more bytes are needed for it. */
  private boolean writePending() throws IOException {
    if (!hasMagic) {
      put(EncryptedFooter.ENCRYPTED_MAGIC);
      advance(EncryptedFooter.MAGIC.length);
      hasMagic = true;
      needed = 1;
      return true;
    }
    PageHeader header;
    ByteArrayInputStream in = new ByteArrayInputStream(pending, pendingStart, pendingEnd - pendingStart);
    try {
      if (!isPageHeader()) {
        hasAllPages = true;
        encryptedStarts.put(plainPosition, encryptedPosition);
        return false;
      }
      header = Util.readPageHeader(in);
    } catch (IOException | ArrayIndexOutOfBoundsException e) {
      needed = pendingEnd - pendingStart + 1; // the header is not complete
      return false;
    }
    int headerLength = pendingEnd - pendingStart - in.available();
    int pageLength = headerLength + header.getCompressed_page_size();
    if (pendingEnd - pendingStart < pageLength) {
      needed = pageLength;
      return false;
    }
    encryptedStarts.put(plainPosition, encryptedPosition);
    put(modules.encrypt(pending, pendingStart, headerLength));
    put(modules.encrypt(pending, pendingStart + headerLength, pageLength - headerLength));
    advance(pageLength);
    needed = 1;
    return true;
  }

  /** Whether a page header follows, and neither an index nor the footer. */
  private boolean isPageHeader() {
    int at = pendingStart;
    if (pending[at++] != INT_FIELD) {
      return false;
    }
    while (at < pendingEnd && pending[at] < 0) {
      at++;
    }
    if (at + 1 >= pendingEnd) {
      throw new ArrayIndexOutOfBoundsException(at);
    }
    return pending[at + 1] == INT_FIELD;
  }

  private void put(byte[] bytes) throws IOException {
    encrypted.write(bytes);
    encryptedPosition += bytes.length;
  }

  private void advance(int count) {
    pendingStart += count;
    plainPosition += count;
  }

  @Override
  public void flush() throws IOException {
    encrypted.flush();
  }

  @Override
  public void close() throws IOException {
    if (isClosed) {
      return;
    }
    isClosed = true;
    try {
      int tail = pendingEnd - EncryptedFooter.TAIL_BYTES;
      // A writer that failed closes the file without a footer.
      if (hasAllPages
          && tail >= pendingStart
          && Arrays.equals(EncryptedFooter.MAGIC, Arrays.copyOfRange(pending, tail + 4, pendingEnd))) {
        int size = EncryptedFooter.size(pending, tail);
        FileMetaData footer = Util.readFileMetaData(new ByteArrayInputStream(pending, tail - size, size));
        move(footer);
        put(EncryptedFooter.encrypted(footer, modules));
      }
    } finally {
      encrypted.close();
    }
  }

  /** Lets the footer say where the encrypted pages stand. */
  private void move(FileMetaData footer) throws IOException {
    for (RowGroup rowGroup : footer.getRow_groups()) {
      long rowGroupBytes = 0;
      for (ColumnChunk column : rowGroup.getColumns()) {
        ColumnMetaData chunk = column.getMeta_data();
        long start = DecryptedInputStream.firstPage(chunk);
        long encryptedStart = encryptedStart(start);
        long bytes = encryptedStart(start + chunk.getTotal_compressed_size()) - encryptedStart;
        chunk.setTotal_compressed_size(bytes);
        chunk.setData_page_offset(encryptedStart(chunk.getData_page_offset()));
        if (chunk.isSetDictionary_page_offset() && chunk.getDictionary_page_offset() > 0) {
          chunk.setDictionary_page_offset(encryptedStart(chunk.getDictionary_page_offset()));
        }
        column.setFile_offset(encryptedStart);
        rowGroupBytes += bytes;
      }
      rowGroup.setTotal_compressed_size(rowGroupBytes);
      if (rowGroup.isSetFile_offset()) {
        rowGroup.setFile_offset(encryptedStart(rowGroup.getFile_offset()));
      }
    }
  }

  private long encryptedStart(long plainStart) throws IOException {
    Long found = encryptedStarts.get(plainStart);
    if (found == null) {
      throw modules.damaged("no page at " + plainStart, null);
    }
    return found;
  }
}
