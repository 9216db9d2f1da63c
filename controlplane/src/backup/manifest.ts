/**
 * The first entry of a backup: the files that follow, by size and SHA-256, and the parts of a
 * control plane that the backup lacks.
 */

import type { Incarnation } from '@rackwright/messages';
import { parsedJson } from '@rackwright/platform';
import type { StoreDriver } from '../config.ts';
import { isStoreDriver } from './store-drivers.ts';

/** One file of the archive. */
export interface BackupFile {
  /** "identity/NAME" or "state.db". */
  readonly name: string;
  readonly bytes: number;
  /** Lower-case hex. */
  readonly sha256: string;
}

export interface BackupManifest {
  readonly format: BackupFormat;
  /** When the store was copied, ISO 8601. */
  readonly time: string;
  /** `store-drivers.ts` says for which drivers the archive has the state. */
  readonly store: {
    readonly driver: StoreDriver;
    readonly incarnation: Incarnation;
    readonly revision: number;
  };
  /** Ids of the keys that seal secrets in the store, and the source of these keys. */
  readonly secretsKey: {
    readonly keyIds: readonly string[];
    readonly source: string;
    /** The keys are among the identity's files. */
    readonly included: boolean;
  };
  readonly files: readonly BackupFile[];
}

export const backupFormat = 'rackwright-backup/1';
/** A backup with sealed private keys, which programs of format 1 could not open. */
export const sealedBackupFormat = 'rackwright-backup/2';
export type BackupFormat = typeof backupFormat | typeof sealedBackupFormat;
export const manifestName = 'manifest.json';
/** The entry after the manifest: its SHA-256, in the form of sha256sum. */
export const manifestSumName = 'manifest.json.sha256';
export const storeName = 'state.db';
export const identityPrefix = 'identity/';
/** Largest manifest, bytes. */
export const manifestBytesMax = 256 * 1024;
/** An identity has only a few files. */
export const filesMax = 256;
const nameForm = /^(state\.db|identity\/[A-Za-z0-9_][A-Za-z0-9._-]{0,80})$/;

/** Why a backup cannot be made or restored. */
export class BackupError extends Error {
  override readonly name = 'BackupError';
}

/** Reads a manifest. Throws `BackupError`. */
export function parseManifest(text: string): BackupManifest {
  const read = parsedJson(text);
  if (read === undefined) {
    throw new BackupError('its manifest.json is no JSON: it is no backup, or a damaged one');
  }
  const { format } = isRecord(read) ? read : {};
  if (format !== backupFormat && format !== sealedBackupFormat) {
    const found = typeof format === 'string' ? JSON.stringify(format.slice(0, 80)) : 'none';
    throw new BackupError(
      `its format is ${found}; this program reads up to ${sealedBackupFormat}. ` +
        'Use the program that made it.',
    );
  }
  if (!isManifest(read)) throw new BackupError('its manifest.json lacks a field: it is damaged');
  const names = new Set(read.files.map(({ name }) => name));
  if (names.size !== read.files.length) {
    throw new BackupError('its manifest.json names a file twice: it is damaged');
  }
  return read;
}

function isManifest(value: unknown): value is BackupManifest {
  if (!isRecord(value)) return false;
  const { store, secretsKey, files, time } = value;
  return (
    typeof time === 'string' &&
    isRecord(store) &&
    isStoreDriver(store['driver']) &&
    typeof store['incarnation'] === 'string' &&
    typeof store['revision'] === 'number' &&
    isRecord(secretsKey) &&
    typeof secretsKey['source'] === 'string' &&
    typeof secretsKey['included'] === 'boolean' &&
    isTexts(secretsKey['keyIds']) &&
    Array.isArray(files) &&
    files.length <= filesMax &&
    files.every(isFile)
  );
}

function isFile(value: unknown): value is BackupFile {
  if (!isRecord(value)) return false;
  const { name, bytes, sha256 } = value;
  const isNamed = typeof name === 'string' && nameForm.test(name);
  const isSized = typeof bytes === 'number' && Number.isSafeInteger(bytes) && bytes >= 0;
  return isNamed && isSized && typeof sha256 === 'string' && /^[0-9a-f]{64}$/.test(sha256);
}

/** Whether a file of this name may be in a backup. */
export function isBackupName(name: string): boolean {
  return nameForm.test(name);
}

function isTexts(value: unknown): value is string[] {
  return Array.isArray(value) && value.every((each) => typeof each === 'string');
}

function isRecord(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
