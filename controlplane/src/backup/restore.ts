/**
 * Restores a backup into an empty data folder. The store is then a new incarnation: every host that
 * an agent has worked for is held until a person has checked it (`host/life/restored.ts`).
 *
 * Invariants:
 * 1. Existing files are never overwritten.
 * 2. The whole archive is checked on disk, and the store is opened, before any part is moved to its
 *    place.
 * 3. A restore that died leaves no control plane: none starts there, and the next restore begins
 *    again (`staging.ts`).
 */
import { digestOf, hexOf, OciError, RunningDigest, readTar } from '@rackwright/oci';
import type { CrashPoint, Disk, LargeFiles, Random } from '@rackwright/platform';
import { type StateStore, sqliteFileProblem } from '@rackwright/store';
import type { ControlPlaneConfig } from '../config.ts';
import { createSecrets, type KeySource, secretsKeyId } from '../secrets/index.ts';
import {
  BackupError,
  type BackupManifest,
  filesMax,
  identityPrefix,
  manifestBytesMax,
  manifestName,
  manifestSumName,
  parseManifest,
  storeName,
} from './manifest.ts';
import { nameInside, openKey } from './sealed-keys.ts';
import { clearStage, leftoverOf, moveAll, openStage, type Staging } from './staging.ts';
import { storesInBackup } from './store-drivers.ts';

export interface RestoreParts {
  readonly disk: Disk;
  readonly files: LargeFiles;
  readonly random: Random;
  /** Opens the store at this path as restored. */
  readonly openRestored: (path: string) => Promise<StateStore>;
  /** The configured source of secrets keys; missing: they are in the identity. */
  readonly keySource?: KeySource;
  readonly crashPoint?: CrashPoint;
}

const fileMode = 0o600;
/** Certificates and public keys: every other file is private. */
const publicName = /\.pem$|\/complete$/;
const publicFileMode = 0o644;
const limits = { entriesMax: filesMax + 1, contentBytesMax: 2 ** 40, headerBytesMax: 64 * 1024 };

/** Restores the backup; returns its manifest. Throws `BackupError`. */
export async function restoreBackup(
  config: ControlPlaneConfig,
  from: string,
  parts: RestoreParts,
): Promise<BackupManifest> {
  const { disk, crashPoint = () => undefined } = parts;
  if ((await leftoverOf(config, disk)) === 'finished') {
    throw new BackupError(
      `an earlier restore into ${config.dataFolder} came to its end: start the control plane`,
    );
  }
  await clearStage(config, parts, crashPoint);
  if ((await disk.stat(from)) === undefined) throw new BackupError(`${from} is missing`);
  const staging = await openStage(config, parts);
  try {
    crashPoint('cp.restoreBegun');
    const manifest = await unpack(from, staging, parts);
    crashPoint('cp.restoreUnpacked');
    await checkFits(config, manifest, parts);
    await openSealedKeys(staging, manifest, parts);
    if (staging.store !== undefined) await openStaged(staging.store.path, parts);
    await moveAll(config, staging, parts, crashPoint);
    return manifest;
  } finally {
    await clearStage(config, parts, crashPoint);
  }
}

/** The private keys are stored in the identity as they were before the backup. */
async function openSealedKeys(
  staging: Staging,
  manifest: BackupManifest,
  { disk, keySource, random }: RestoreParts,
): Promise<void> {
  const sealed = manifest.files.filter(({ name }) => nameInside(name) !== undefined);
  if (sealed.length === 0 || keySource === undefined) return;
  const secrets = createSecrets(await keySource.read(), random);
  for (const { name } of sealed) {
    const inside = nameInside(name) ?? '';
    const path = stagedPath(staging, name);
    const text = (await disk.read(path)) ?? new Uint8Array();
    const bytes = openKey(secrets, inside.slice(identityPrefix.length), text);
    await disk.writeAtomic(stagedPath(staging, inside), bytes, fileMode);
    await disk.remove(path);
  }
}

/** Makes the store a new incarnation. */
async function openStaged(path: string, parts: RestoreParts): Promise<void> {
  const problem = sqliteFileProblem(path);
  if (problem !== undefined) throw new BackupError(problem);
  const store = await parts.openRestored(path);
  parts.crashPoint?.('cp.restoreStoreOpened');
  await store.close();
  parts.crashPoint?.('cp.restoreStoreClosed');
}

async function unpack(
  from: string,
  staging: Staging,
  parts: RestoreParts,
): Promise<BackupManifest> {
  const { files } = parts;
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
      await unpackFile(stagedPath(staging, file.name), entry.content, files);
      parts.crashPoint?.('cp.restoreFileWritten');
    }
    const [first] = missing.keys();
    if (first !== undefined) throw new BackupError(`${from} lacks ${first}: it is damaged`);
    await setModes(staging, manifest, parts.disk);
    await checkStaged(from, staging, manifest, files);
    return manifest;
  } catch (error) {
    if (!(error instanceof OciError)) throw error;
    throw new BackupError(`${from} cannot be read: ${error.message}`, { cause: error });
  }
}

/** The names come from a parsed manifest: those of the identity contain no folders. */
function stagedPath({ folder, store }: Staging, name: string): string {
  return name === storeName && store !== undefined ? store.path : `${folder}/${name}`;
}

/** Compares the files on disk with the manifest. */
async function checkStaged(
  from: string,
  staging: Staging,
  manifest: BackupManifest,
  files: LargeFiles,
): Promise<void> {
  for (const { name, bytes, sha256 } of manifest.files) {
    const digest = new RunningDigest();
    for await (const piece of files.read(stagedPath(staging, name))) digest.update(piece);
    if (digest.bytes !== bytes || hexOf(digest.digest()) !== sha256) {
      throw new BackupError(`${name} in ${from} is not what its manifest says: damaged`);
    }
  }
}

type Entries = ReturnType<typeof readTar>;

/** Reads the first two entries. */
async function readManifest(from: string, entries: Entries): Promise<BackupManifest> {
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
): Promise<void> {
  const part = await files.createPart(path);
  try {
    for await (const piece of content) await part.write(piece);
    await part.sync();
  } finally {
    await part.close();
  }
}

/** Sets the modes that a first start sets. */
async function setModes(staging: Staging, manifest: BackupManifest, disk: Disk): Promise<void> {
  for (const { name } of manifest.files) {
    if (!name.startsWith(identityPrefix)) continue;
    const path = stagedPath(staging, name);
    const bytes = (await disk.read(path)) ?? new Uint8Array();
    await disk.writeAtomic(path, bytes, publicName.test(name) ? publicFileMode : fileMode);
  }
}

/** The configured driver is the same, and the configured keys open the secrets of the store. */
async function checkFits(
  { store }: ControlPlaneConfig,
  manifest: BackupManifest,
  { keySource }: RestoreParts,
): Promise<void> {
  const { driver } = manifest.store;
  if (driver !== store.driver) {
    throw new BackupError(
      `the backup is of a store on ${driver}, and the configuration names ${store.driver}`,
    );
  }
  if (storesInBackup[driver].holdsState && !manifest.files.some(({ name }) => name === storeName)) {
    throw new BackupError(`the backup holds no ${storeName}: it is damaged`);
  }
  if (!manifest.files.some(({ name }) => name === `${identityPrefix}complete`)) {
    throw new BackupError('the backup holds no whole identity: it is damaged');
  }
  const { keyIds, included } = manifest.secretsKey;
  if (keySource === undefined) {
    if (included || keyIds.length === 0) return;
    throw new BackupError(
      `secrets in the backup are under key ${keyIds.join(', ')}, which is not in it: it came ` +
        `from ${manifest.secretsKey.source}; name that under secrets.key in its file`,
    );
  }
  if (keyIds.length === 0) return;
  const here = (await keySource.read()).map(secretsKeyId);
  const lacking = keyIds.filter((id) => !here.includes(id));
  if (lacking.length === 0) return;
  const also = included ? '; it is in the backup, as identity/secrets.key' : '';
  throw new BackupError(
    `secrets in the backup are under key ${lacking.join(', ')}, and ${keySource.described} holds ` +
      `${here.join(', ')}: add that key as a line of its own${also}`,
  );
}
