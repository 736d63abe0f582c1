package dbt.ducklake.encryption;

import java.io.FileNotFoundException;
import java.io.IOException;
import java.net.URI;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.BlockLocation;
import org.apache.hadoop.fs.ChecksumFileSystem;
import org.apache.hadoop.fs.FSDataInputStream;
import org.apache.hadoop.fs.FSDataOutputStream;
import org.apache.hadoop.fs.FileStatus;
import org.apache.hadoop.fs.FileSystem;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.fs.permission.FsPermission;
import org.apache.hadoop.util.Progressable;

/**
 * Encrypts Parquet files while they are written, and shows them as plain ones to readers.
 *
 * <p>DuckDB encrypts without the additional authenticated data that the Parquet format demands, so other Parquet
 * libraries can not decrypt its files, and it can not reliably read theirs. Spark's reader and writer work with plain
 * files here, and the bytes in storage are as DuckDB has them.
 *
 * <p>A path is {@code ducklake:///SEALED_KEY/SCHEME/AUTHORITY/path}, with "-" for no authority.
 */
public final class EncryptedFileSystem extends FileSystem {
  static final String SCHEME = "ducklake";

  private static final URI ROOT = URI.create(SCHEME + ":///");
  private static final String NO_AUTHORITY = "-";

  /** A path in storage, and what stands before it in a path of this file system. */
  private record Stored(Path path, String prefix, String sealedKey) {
    static Stored of(Path path) throws FileNotFoundException {
      String[] parts = path.toUri().getPath().split("/", 5);
      if (parts.length < 5) {
        throw new FileNotFoundException(path.toString());
      }
      String authority = parts[3].equals(NO_AUTHORITY) ? "" : parts[3];
      String prefix = String.join("/", "", parts[1], parts[2], parts[3]);
      return new Stored(new Path(parts[2], authority, "/" + parts[4]), prefix, parts[1]);
    }

    /** The path of this file system for another path in the same storage. */
    Path shown(Path other) {
      return new Path(SCHEME, "", prefix + other.toUri().getPath());
    }

    FileStatus shown(FileStatus status) {
      return new FileStatus(
          status.getLen(),
          status.isDirectory(),
          status.getReplication(),
          status.getBlockSize(),
          status.getModificationTime(),
          shown(status.getPath()));
    }
  }

  @Override
  public void initialize(URI name, Configuration conf) throws IOException {
    super.initialize(name, conf);
    setConf(conf);
  }

  @Override
  public String getScheme() {
    return SCHEME;
  }

  @Override
  public URI getUri() {
    return ROOT;
  }

  private FileSystem storage(Stored stored) throws IOException {
    FileSystem found = stored.path().getFileSystem(getConf());
    return found instanceof ChecksumFileSystem local ? local.getRawFileSystem() : found;
  }

  private Modules modules(Stored stored) throws IOException {
    return new Modules(SealedKey.open(getConf(), stored.sealedKey()), stored.path());
  }

  @Override
  public FSDataInputStream open(Path path, int bufferSize) throws IOException {
    Stored stored = Stored.of(path);
    FileSystem storage = storage(stored);
    Modules modules = modules(stored);
    long length = storage.getFileStatus(stored.path()).getLen();
    FSDataInputStream encrypted = storage.open(stored.path(), bufferSize);
    try {
      return new FSDataInputStream(new DecryptedInputStream(encrypted, length, modules));
    } catch (IOException | RuntimeException e) {
      encrypted.close();
      throw e;
    }
  }

  @Override
  public FSDataOutputStream create(
      Path path,
      FsPermission permission,
      boolean overwrite,
      int bufferSize,
      short replication,
      long blockSize,
      Progressable progress)
      throws IOException {
    Stored stored = Stored.of(path);
    Modules modules = modules(stored);
    FSDataOutputStream encrypted =
        storage(stored).create(stored.path(), permission, overwrite, bufferSize, replication, blockSize, progress);
    return new FSDataOutputStream(new EncryptingOutputStream(encrypted, modules), null);
  }

  @Override
  public FSDataOutputStream append(Path path, int bufferSize, Progressable progress) {
    throw new UnsupportedOperationException("an encrypted file is written as a whole");
  }

  @Override
  public FileStatus getFileStatus(Path path) throws IOException {
    Stored stored = Stored.of(path);
    return stored.shown(storage(stored).getFileStatus(stored.path()));
  }

  @Override
  public FileStatus[] listStatus(Path path) throws IOException {
    Stored stored = Stored.of(path);
    FileStatus[] found = storage(stored).listStatus(stored.path());
    FileStatus[] shown = new FileStatus[found.length];
    for (int i = 0; i < found.length; i++) {
      shown[i] = stored.shown(found[i]);
    }
    return shown;
  }

  @Override
  public BlockLocation[] getFileBlockLocations(FileStatus status, long start, long length) throws IOException {
    Stored stored = Stored.of(status.getPath());
    return storage(stored).getFileBlockLocations(stored.path(), start, length);
  }

  @Override
  public boolean rename(Path from, Path to) throws IOException {
    Stored stored = Stored.of(from);
    return storage(stored).rename(stored.path(), Stored.of(to).path());
  }

  @Override
  public boolean delete(Path path, boolean recursive) throws IOException {
    Stored stored = Stored.of(path);
    return storage(stored).delete(stored.path(), recursive);
  }

  @Override
  public boolean mkdirs(Path path, FsPermission permission) throws IOException {
    Stored stored = Stored.of(path);
    return storage(stored).mkdirs(stored.path(), permission);
  }

  @Override
  public Path getWorkingDirectory() {
    return new Path(ROOT);
  }

  @Override
  public void setWorkingDirectory(Path path) {
    throw new UnsupportedOperationException("paths of encrypted files are absolute");
  }
}
