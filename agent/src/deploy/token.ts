/**
 * The proof that a request comes from the host of one deployment: a token made of the deployment's
 * id by a key that only this agent has. Nothing is kept per host, and a restart knows every token
 * again.
 */

import { createHmac, timingSafeEqual } from 'node:crypto';
import { asRunNumber, type DeploymentId, deploymentIdOf, type HostUid } from '@rackwright/messages';
import type { Disk, Random } from '@rackwright/platform';

const keyBytes = 32;
const ownerOnly = 0o600;
const purpose = 'rackwright-deployment\0';

/** Reads the key from `path`, or makes it. One of another length is an error, not a new key. */
export async function loadDeployKey(disk: Disk, random: Random, path: string): Promise<Uint8Array> {
  const known = await disk.read(path);
  if (known === undefined) {
    const made = random.bytes(keyBytes);
    await disk.writeAtomic(path, made, ownerOnly);
    return made;
  }
  if (known.length === keyBytes) return known;
  const remedy = 'remove it to make a new one; hosts that are being deployed must then be anew';
  throw new Error(`${path} has ${known.length} bytes instead of ${keyBytes}: ${remedy}`);
}

/** 64 hex digits. */
export function tokenOf(key: Uint8Array, deploymentId: DeploymentId): string {
  return createHmac('sha256', key).update(purpose).update(deploymentId).digest('hex');
}

/** The comparison takes the same time for each presented text. */
export function isTokenOf(key: Uint8Array, deploymentId: DeploymentId, presented: string): boolean {
  const right = Buffer.from(tokenOf(key, deploymentId));
  const given = Buffer.from(presented.slice(0, right.length + 1));
  return given.length === right.length && timingSafeEqual(given, right);
}

const urlForm = /^([A-Za-z0-9-]{1,64})\.(\d{1,15})$/;
const idForm = /^([A-Za-z0-9-]{1,64})\/(\d{1,15})$/;

/** A deployment, taken apart. */
export interface DeploymentParts {
  readonly hostUid: HostUid;
  /** Later ones of the same host have higher ones. */
  readonly run: number;
}

/** "HOST UID/RUN"; undefined when it is none. */
export function readDeploymentId(id: string): DeploymentParts | undefined {
  const [, hostUid, run] = idForm.exec(id) ?? [];
  return hostUid === undefined ? undefined : { hostUid, run: Number(run) };
}

/**
 * The id as it is written in URLs. Throws when it is no valid id, which is a fault of the caller.
 */
export function idInUrl(id: DeploymentId): string {
  const read = readDeploymentId(id);
  if (read === undefined) throw new Error(`"${id}" is no deployment: HOST UID/RUN is one`);
  return `${read.hostUid}.${read.run}`;
}

/** The id in a URL; undefined when there is none. */
export function idFromUrl(text: string): DeploymentId | undefined {
  const [, hostUid, run] = urlForm.exec(text) ?? [];
  return hostUid === undefined ? undefined : deploymentIdOf(hostUid, asRunNumber(BigInt(run ?? 0)));
}
