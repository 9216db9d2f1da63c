/**
 * Makes a backup: identity and store in one tar archive, whether or not the control plane runs.
 *
 * Invariants:
 * 1. The archive gets its name when it is complete and durable; an existing one is never replaced.
 * 2. Only its owner can read it. It holds the private keys of the control plane; they are sealed
 *    where the secrets key is kept elsewhere. It never contains tokens.
 * 3. The key that seals secrets in the copy of the store is in the identity of the same archive,
 *    unless the configuration keeps it elsewhere; then the manifest says so.
 */
import { digestOf, hexOf, RunningDigest } from '@rackwright/oci';
import type { Clock, Disk, LargeFiles, LocalCalls, PartFile, Random } from '@rackwright/platform';
import { randomId } from '@rackwright/platform';
import { type StateStore, sqliteFileProblem } from '@rackwright/store';
import type { ControlPlaneConfig } from '../config.ts';
import { createSecrets, type KeySource, parseKeys, secretsKeyId } from '../secrets/index.ts';
import { copySocket, copyStore, removeCopy, type StoreCopy } from './copy-service.ts';
import {
  BackupError,
  type BackupFile,
  type BackupManifest,
  backupFormat,
  identityPrefix,
  isBackupName,
  manifestName,
  manifestSumName,
  sealedBackupFormat,
  storeName,
} from './manifest.ts';
import { handlingOf, type SealedKeys, sealedName } from './sealed-keys.ts';
import { isStoreDriver } from './store-drivers.ts';
import { tarEnd, tarHeader, tarPadding } from './tar.ts';

export interface BackupParts {
  readonly disk: Disk;
  readonly files: LargeFiles;
  readonly calls: LocalCalls;
  readonly clock: Clock;
  readonly random: Random;
  /** The secrets keys where they are kept elsewhere; used when no control plane runs. */
  readonly keySource?: KeySource;
  /** Opens the store of the configuration, when no control plane runs. */
  readonly openStore: () => Promise<StateStore>;
}

/** How long a running control plane may take to copy its store. */
const copyTimeoutMs = 3_600_000;
const secretsKeyName = `${identityPrefix}secrets.key`;
const smallFileBytesMax = 1024 * 1024;

/** Makes the backup; returns its manifest. Throws `BackupError`. */
export async function makeBackup(
  config: ControlPlaneConfig,
  to: string,
  parts: BackupParts,
): Promise<BackupManifest> {
  const { disk, files } = parts;
  if ((await disk.stat(to)) !== undefined) {
    throw new BackupError(`${to} exists already; name a file that does not`);
  }
  const folder = config.dataFolder;
  if ((await disk.stat(`${folder}/identity/complete`)) === undefined) {
    throw new BackupError(`${folder} holds no control plane that has ever started`);
  }
  const { copy, release } = await copyOfStore(config, parts);
  try {
    const problem = copy.path === undefined ? undefined : sqliteFileProblem(copy.path);
    if (problem !== undefined) throw new BackupError(problem);
    return await writeArchive(config, to, copy, parts);
  } finally {
    if (copy.path !== undefined) await removeCopy(copy.path, files);
    await release();
  }
}

/** A copy that is reserved for us until it is released. */
interface ReservedCopy {
  readonly copy: StoreCopy;
  release(): Promise<void>;
}

async function copyOfStore(config: ControlPlaneConfig, parts: BackupParts): Promise<ReservedCopy> {
  const folder = config.dataFolder;
  const connected = await parts.calls.callAndStay(copySocket(folder), 'copy', copyTimeoutMs);
  if (connected !== undefined) {
    const read = JSON.parse(connected.answer) as StoreCopy & { readonly problem?: string };
    if (read.problem === undefined) return { copy: read, release: () => connected.release() };
    await connected.release();
    throw new BackupError(`the running control plane made no copy: ${read.problem}`);
  }
  const store = await parts.openStore();
  try {
    const keys = config.secrets === undefined ? undefined : await parts.keySource?.read();
    const secrets = keys && { secrets: createSecrets(keys, parts.random) };
    const copy = await copyStore({ ...parts, ...secrets, store, folder });
    return { copy, release: async () => undefined };
  } finally {
    await store.close();
  }
}

/** A file of the archive, and the path to read it from. */
interface Source extends BackupFile {
  readonly content: () => AsyncIterable<Uint8Array> | Iterable<Uint8Array>;
}

function manifestOf(
  { secrets }: ControlPlaneConfig,
  driver: BackupManifest['store']['driver'],
  { incarnation, revision, keyIds, sealedKeys }: StoreCopy,
  sources: readonly Source[],
  nowMs: number,
): BackupManifest {
  return {
    format: sealedKeys === undefined ? backupFormat : sealedBackupFormat,
    time: new Date(nowMs).toISOString(),
    store: { driver, incarnation, revision },
    secretsKey: {
      keyIds: [...new Set([...keyIds, ...(sealedKeys ? [sealedKeys.keyId] : [])])],
      source: secrets === undefined ? secretsKeyName : secrets.key.kind,
      included: secrets === undefined,
    },
    files: sources.map(({ name, bytes, sha256 }) => ({ name, bytes, sha256 })),
  };
}

/** One file of the archive. The written bytes must match the counted ones, or the backup fails. */
async function writeMember(
  part: PartFile,
  { name, bytes, sha256, content }: Source,
  nowMs: number,
): Promise<void> {
  await part.write(tarHeader(name, bytes, nowMs));
  const digest = new RunningDigest();
  for await (const piece of content()) {
    digest.update(piece);
    await part.write(piece);
  }
  if (digest.bytes !== bytes || hexOf(digest.digest()) !== sha256) {
    throw new BackupError(`${name} changed while it was read; try again`);
  }
  await part.write(tarPadding(bytes));
}

async function writeArchive(
  config: ControlPlaneConfig,
  to: string,
  copy: StoreCopy,
  { files, disk, clock, random }: BackupParts,
): Promise<BackupManifest> {
  const { driver, sealedKeys } = copy;
  if (!isStoreDriver(driver)) throw new BackupError(`a store on ${driver} has no backup`);
  if (config.secrets !== undefined && sealedKeys === undefined) {
    throw new BackupError(
      'the key of secrets is kept apart, and who made the copy did not seal by it: start the ' +
        'control plane of this release and of this configuration',
    );
  }
  const sources = await identityFiles(`${config.dataFolder}/identity`, disk, files, sealedKeys);
  if (config.secrets === undefined) await checkKeys(copy, sources);
  if (copy.path !== undefined) sources.push(await largeFile(storeName, copy.path, files));
  const nowMs = clock.nowMs();
  const manifest = manifestOf(config, driver, copy, sources, nowMs);
  const text = Buffer.from(`${JSON.stringify(manifest, undefined, 2)}\n`);
  const temporary = `${to}.${randomId(random)}.part`;
  const part = await files.openPart(temporary);
  try {
    const first = sourceOf(manifestName, text);
    const sum = sourceOf(manifestSumName, Buffer.from(`${first.sha256}  ${manifestName}\n`));
    for (const source of [first, sum, ...sources]) await writeMember(part, source, nowMs);
    await part.write(tarEnd);
    await part.sync();
    await part.close();
    if ((await disk.stat(to)) !== undefined) throw new BackupError(`${to} exists by now`);
    await files.rename(temporary, to);
  } catch (error) {
    // It may be closed already. The next line removes it in any case.
    await part.close().catch(() => undefined);
    await files.remove(temporary);
    throw error;
  }
  return manifest;
}

/** A key rotation may have ended since the copy: the key in use has to be in the archive. */
async function checkKeys({ keyIds }: StoreCopy, sources: readonly Source[]): Promise<void> {
  if (keyIds.length === 0) return;
  const pieces: Uint8Array[] = [];
  const file = sources.find(({ name }) => name === secretsKeyName);
  for await (const piece of file?.content() ?? []) pieces.push(piece);
  const text = Buffer.concat(pieces).toString('utf8');
  const here = file === undefined ? [] : parseKeys(text, secretsKeyName).map(secretsKeyId);
  const lacking = keyIds.filter((id) => !here.includes(id));
  if (lacking.length === 0) return;
  throw new BackupError(
    `secrets in the store are under key ${lacking.join(', ')}, which ${secretsKeyName} does not ` +
      'hold by now: if a change of keys is under way, try again',
  );
}

async function identityFiles(
  folder: string,
  disk: Disk,
  files: LargeFiles,
  sealedKeys: SealedKeys | undefined,
): Promise<Source[]> {
  const found: Source[] = [];
  for (const { name, sizeBytes } of await files.list(folder)) {
    // Skips temporary files, which the next start makes again.
    if (name.endsWith('.tmp')) continue;
    const handling = handlingOf(name);
    if (handling === 'leftOut') continue;
    const inArchive = `${identityPrefix}${name}`;
    if (!isBackupName(inArchive) || sizeBytes > smallFileBytesMax) {
      throw new BackupError(`${folder}/${name} is none of the identity's files; move it away`);
    }
    if (handling === 'sealed' && sealedKeys !== undefined) {
      const text = sealedKeys.files[name];
      if (text === undefined) throw new BackupError(`${folder}/${name} is new; try again`);
      found.push(sourceOf(sealedName(inArchive), Buffer.from(text)));
      continue;
    }
    const bytes = await disk.read(`${folder}/${name}`);
    if (bytes === undefined) throw new BackupError(`${folder}/${name} is gone by now; try again`);
    found.push(sourceOf(inArchive, bytes));
  }
  return found;
}

function sourceOf(name: string, bytes: Uint8Array): Source {
  return { name, bytes: bytes.length, sha256: hexOf(digestOf(bytes)), content: () => [bytes] };
}

async function largeFile(name: string, path: string, files: LargeFiles): Promise<Source> {
  const digest = new RunningDigest();
  for await (const piece of files.read(path)) digest.update(piece);
  const { bytes } = digest;
  return { name, bytes, sha256: hexOf(digest.digest()), content: () => files.read(path) };
}
