/**
 * Takes a backup into an empty data folder. The store is then a new incarnation: every host that an
 * agent has worked for is held until a person has looked (`host/restored.ts`).
 *
 * Invariants:
 * 1. Nothing is put where something is.
 * 2. All of the archive is checked, and the store opened, before any of it gets its place; the
 *    store comes first, so that what was cut short is no identity beside an empty store.
 */
import { digestOf, hexOf, OciError, RunningDigest, readTar } from '@rackwright/oci';
import type { Disk, LargeFiles } from '@rackwright/platform';
import { type StateStore, sqliteFileProblem } from '@rackwright/store';
import type { ControlPlaneConfig } from '../config.ts';
import { type KeySource, secretsKeyId } from '../secrets/index.ts';
import {
  BackupError,
  filesMax,
  identityPrefix,
  type Manifest,
  manifestBytesMax,
  manifestName,
  manifestSumName,
  parseManifest,
  storeName,
} from './manifest.ts';

export interface RestoreParts {
  readonly disk: Disk;
  readonly files: LargeFiles;
  /** Opens the store at this path as restored. */
  readonly openRestored: (path: string) => Promise<StateStore>;
  /** Where the configuration says that secrets keys are; missing: in the identity. */
  readonly keySource?: KeySource;
}

const folderMode = 0o700;
const fileMode = 0o600;
/** Certificates and public keys: what else is there is private. */
const publicName = /\.pem$|\/complete$/;
const publicFileMode = 0o644;
const limits = { entriesMax: filesMax + 1, contentBytesMax: 2 ** 40, headerBytesMax: 64 * 1024 };
const emptyFolderOnly = 'a backup is taken into an empty folder only';

/** Takes it; answers what it held. Throws `BackupError`. */
export async function restoreBackup(
  config: ControlPlaneConfig,
  from: string,
  parts: RestoreParts,
): Promise<Manifest> {
  const { disk, files } = parts;
  const { dataFolder } = config;
  await mustBeEmpty(config, parts);
  if ((await disk.stat(from)) === undefined) throw new BackupError(`${from} is missing`);
  await disk.makeFolder(dataFolder, folderMode);
  const staging = `${dataFolder}/restoring`;
  await disk.makeFolder(`${staging}/identity`, folderMode);
  try {
    const manifest = await unpack(from, staging, parts);
    await checkFits(config, manifest, parts);
    const store = `${staging}/${storeName}`;
    if (config.store.driver === 'sqlite') {
      const problem = sqliteFileProblem(store);
      if (problem !== undefined) throw new BackupError(problem);
      await (await parts.openRestored(store)).close();
      await files.rename(store, config.store.path);
    }
    await files.rename(`${staging}/identity`, `${dataFolder}/identity`);
    return manifest;
  } finally {
    await files.removeFolder(staging);
  }
}

async function mustBeEmpty(
  { dataFolder, store }: ControlPlaneConfig,
  { disk, files }: RestoreParts,
): Promise<void> {
  const [found] = await files.list(dataFolder);
  const isTaken = found !== undefined || (await disk.stat(`${dataFolder}/identity`)) !== undefined;
  if (isTaken) {
    const what = found?.name ?? 'identity';
    throw new BackupError(`${dataFolder} holds ${what}, and ${emptyFolderOnly}: move that away`);
  }
  if (store.driver === 'sqlite' && (await disk.stat(store.path)) !== undefined) {
    throw new BackupError(`${store.path} exists, and ${emptyFolderOnly}: move that away`);
  }
}

async function unpack(
  from: string,
  staging: string,
  { files, disk }: RestoreParts,
): Promise<Manifest> {
  const entries = readTar(files.read(from), limits);
  try {
    const manifest = await readManifest(from, entries);
    const missing = new Map(manifest.files.map((file) => [file.name, file]));
    for await (const entry of entries) {
      const file = missing.get(entry.name);
      if (file === undefined || entry.kind !== 'file') {
        throw new BackupError(`${from} holds ${entry.name}, which its manifest does not name`);
      }
      missing.delete(entry.name);
      const found = await unpackFile(`${staging}/${file.name}`, entry.content, files);
      if (found.bytes !== file.bytes || found.sha256 !== file.sha256) {
        throw new BackupError(`${entry.name} in ${from} is not what its manifest says: damaged`);
      }
    }
    const [first] = missing.keys();
    if (first !== undefined) throw new BackupError(`${from} lacks ${first}: it is damaged`);
    await setModes(staging, manifest, disk);
    return manifest;
  } catch (error) {
    if (!(error instanceof OciError)) throw error;
    throw new BackupError(`${from} cannot be read: ${error.message}`, { cause: error });
  }
}

type Entries = ReturnType<typeof readTar>;

/** The first two entries. */
async function readManifest(from: string, entries: Entries): Promise<Manifest> {
  const text = await smallEntry(from, entries, manifestName);
  const sum = await smallEntry(from, entries, manifestSumName);
  if (!sum.startsWith(hexOf(digestOf(Buffer.from(text))))) {
    throw new BackupError(`${manifestName} in ${from} is not what it was: damaged`);
  }
  return parseManifest(text);
}

async function smallEntry(from: string, entries: Entries, wanted: string): Promise<string> {
  const { value: entry } = await entries.next();
  if (entry?.kind !== 'file' || entry.name !== wanted || entry.sizeBytes > manifestBytesMax) {
    throw new BackupError(`${from} has no ${wanted} where it belongs: it is no backup, or damaged`);
  }
  const pieces: Uint8Array[] = [];
  for await (const piece of entry.content) pieces.push(piece.slice());
  return Buffer.concat(pieces).toString('utf8');
}

async function unpackFile(
  path: string,
  content: AsyncIterable<Uint8Array>,
  files: LargeFiles,
): Promise<{ readonly bytes: number; readonly sha256: string }> {
  const digest = new RunningDigest();
  const part = await files.openPart(path);
  try {
    for await (const piece of content) {
      digest.update(piece);
      await part.write(piece);
    }
    await part.sync();
  } finally {
    await part.close();
  }
  return { bytes: digest.bytes, sha256: hexOf(digest.digest()) };
}

/** As the first start made them. */
async function setModes(staging: string, manifest: Manifest, disk: Disk): Promise<void> {
  for (const { name } of manifest.files) {
    if (!name.startsWith(identityPrefix)) continue;
    const bytes = (await disk.read(`${staging}/${name}`)) ?? new Uint8Array();
    const mode = publicName.test(name) ? publicFileMode : fileMode;
    await disk.writeAtomic(`${staging}/${name}`, bytes, mode);
  }
}

/** The configuration is of the same kind, and its keys open what is in the store. */
async function checkFits(
  { store }: ControlPlaneConfig,
  manifest: Manifest,
  { keySource }: RestoreParts,
): Promise<void> {
  const { driver } = manifest.store;
  if (driver !== store.driver) {
    throw new BackupError(
      `the backup is of a store on ${driver}, and the configuration names ${store.driver}`,
    );
  }
  if (driver === 'sqlite' && !manifest.files.some(({ name }) => name === storeName)) {
    throw new BackupError(`the backup holds no ${storeName}: it is damaged`);
  }
  const { keyIds, included } = manifest.secretsKey;
  if (keySource === undefined) {
    if (included || keyIds.length === 0) return;
    throw new BackupError(
      `secrets in the backup are under key ${keyIds.join(', ')}, which is not in it: it came ` +
        `from ${manifest.secretsKey.source}; name that under secrets.key in its file`,
    );
  }
  const here = (await keySource.read()).map(secretsKeyId);
  const lacking = keyIds.filter((id) => !here.includes(id));
  if (lacking.length === 0) return;
  const also = included ? '; it is in the backup, as identity/secrets.key' : '';
  throw new BackupError(
    `secrets in the backup are under key ${lacking.join(', ')}, and ${keySource.described} holds ` +
      `${here.join(', ')}: add that key as a line of its own${also}`,
  );
}
