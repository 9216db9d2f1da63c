/**
 * Which hosts have said that they run the image that was deployed to them.
 *
 * P1 A proof counts once it is durable (`HostProved` in the journal): no restart forgets it, and an
 *    answer of 200 means that it is recorded.
 * P2 Only a host with the token of a deployment proves it, and only that one. A deployment older
 *    than the proved one proves nothing any more.
 * P3 A repeated proof is written once.
 */
import { create } from '@bufbuild/protobuf';
import { timestampFromMs } from '@bufbuild/protobuf/wkt';
import { agent, type DeploymentId, type HostUid, noDeployment } from '@rackwright/messages';
import type { Clock, Log } from '@rackwright/platform';
import type { Journal } from '../journal/index.ts';
import { idFromUrl, idInUrl, isTokenOf, readDeploymentId, tokenOf } from './token.ts';

export interface ProofsParts {
  readonly clock: Clock;
  readonly log: Log;
  readonly journal: Pick<Journal, 'append' | 'state'>;
  readonly key: Uint8Array;
}

/**
 * proved: now durable, or known before. outdated: another deployment has followed. wrong: no such
 * deployment, or another token. notDurable: our disk refused it; the host has to repeat it.
 */
export type PhoneHomeAnswer = 'proved' | 'outdated' | 'wrong' | 'notDurable';

/** One sign of a host, as text of the control plane. */
interface SeenSign {
  readonly kind: agent.HostSignKind;
  readonly atMs: number;
  readonly detail: string;
}

/** The last sign is remembered for so many hosts. */
const seenHostsMax = 10_000;

export class Proofs {
  readonly #parts: ProofsParts;
  readonly #waiters = new Set<() => void>();
  /** By host uid, the host with the oldest sign first; the last sign of each kind. */
  readonly #seen = new Map<HostUid, Map<agent.HostSignKind, SeenSign>>();
  /** By host uid: the proof that is being written. Never rejects. */
  readonly #writing = new Map<HostUid, Promise<PhoneHomeAnswer>>();

  constructor(parts: ProofsParts) {
    this.#parts = parts;
  }

  /** Path of the URL that the host of this deployment calls when it runs. */
  phoneHomePath(deploymentId: DeploymentId): string {
    return `/phone-home/${idInUrl(deploymentId)}/${tokenOf(this.#parts.key, deploymentId)}`;
  }

  /** Path of the folder where its first-boot data is, with a slash at its end. */
  seedPath(deploymentId: DeploymentId): string {
    return `/seed/${idInUrl(deploymentId)}/${tokenOf(this.#parts.key, deploymentId)}/`;
  }

  /** The deployment that a URL of ours names; undefined when the token is not its own. */
  deploymentOf(idText: string, token: string): DeploymentId | undefined {
    const id = idFromUrl(idText);
    return id !== undefined && isTokenOf(this.#parts.key, id, token) ? id : undefined;
  }

  /** A host calls; `from` is its address. */
  async phoneHome(idText: string, token: string, from: string): Promise<PhoneHomeAnswer> {
    const deploymentId = this.deploymentOf(idText, token);
    const own = deploymentId === undefined ? undefined : readDeploymentId(deploymentId);
    if (deploymentId === undefined || own === undefined) {
      const claimed = readDeploymentId(idFromUrl(idText) ?? '')?.hostUid;
      if (claimed !== undefined) this.#note(claimed, agent.HostSignKind.WRONG_TOKEN, from);
      return 'wrong';
    }
    const { hostUid } = own;
    // P3, and no two of one host at once.
    for (;;) {
      const writing = this.#writing.get(hostUid);
      if (writing === undefined) break;
      await writing;
    }
    const known = this.#parts.journal.state.proved.get(hostUid);
    if (known?.deploymentId === deploymentId) return 'proved';
    // P2
    if (known !== undefined && runOf(known.deploymentId) > own.run) {
      this.#note(hostUid, agent.HostSignKind.OUTDATED_CALL, from);
      return 'outdated';
    }
    const written = this.#write(hostUid, deploymentId, from);
    this.#writing.set(hostUid, written);
    try {
      return await written;
    } finally {
      this.#writing.delete(hostUid);
    }
  }

  async #write(
    hostUid: HostUid,
    deploymentId: DeploymentId,
    from: string,
  ): Promise<PhoneHomeAnswer> {
    const { clock, journal, log } = this.#parts;
    const fields = { host: hostUid, deployment: deploymentId, from };
    const time = timestampFromMs(clock.nowMs());
    try {
      await journal.append({ case: 'hostProved', value: { hostUid, deploymentId, time } });
    } catch (error) {
      const text = 'a host has phoned home and it could not be written down';
      log.error({ ...fields }, text, error);
      this.#note(hostUid, agent.HostSignKind.NOT_DURABLE, from);
      return 'notDurable';
    }
    log.info(fields, 'the host has phoned home');
    for (const wake of [...this.#waiters]) wake();
    return 'proved';
  }

  isProved(deploymentId: DeploymentId): boolean {
    const hostUid = readDeploymentId(deploymentId)?.hostUid ?? '';
    return this.#parts.journal.state.proved.get(hostUid)?.deploymentId === deploymentId;
  }

  /** Resolves with whether it is proved, when it is, after `waitMs`, or when aborted. */
  waitUntilProved(
    deploymentId: DeploymentId,
    waitMs: number,
    signal: AbortSignal,
  ): Promise<boolean> {
    if (this.isProved(deploymentId) || signal.aborted) {
      return Promise.resolve(this.isProved(deploymentId));
    }
    return new Promise((resolve) => {
      const settle = (): void => {
        cancelTimer();
        this.#waiters.delete(check);
        signal.removeEventListener('abort', settle);
        resolve(this.isProved(deploymentId));
      };
      const check = (): void => {
        if (this.isProved(deploymentId)) settle();
      };
      this.#waiters.add(check);
      signal.addEventListener('abort', settle, { once: true });
      const cancelTimer = this.#parts.clock.after(waitMs, settle);
    });
  }

  /** The host has asked the boot services. */
  noteNetboot(hostUid: HostUid, stage: string): void {
    this.#note(hostUid, agent.HostSignKind.NETBOOT, stage);
  }

  /** A system on the host has asked for an address. */
  noteAddressAsked(hostUid: HostUid): void {
    this.#note(hostUid, agent.HostSignKind.ADDRESS_ASKED, '');
  }

  /** It has been given the data of its first boot. */
  noteFirstBoot(hostUid: HostUid): void {
    this.#note(hostUid, agent.HostSignKind.FIRST_BOOT_FETCHED, '');
  }

  /** What was seen of the host at or after this time: the last sign of each kind. */
  signsSince(hostUid: HostUid, sinceMs: number): readonly agent.HostSign[] {
    return [...(this.#seen.get(hostUid)?.values() ?? [])]
      .filter(({ atMs }) => atMs >= sinceMs)
      .map(({ kind, atMs, detail }) =>
        create(agent.HostSignSchema, { kind, detail, time: timestampFromMs(atMs) }),
      );
  }

  /** Nothing is left of it. Rejects when that cannot be made durable. */
  async forgetHost(hostUid: HostUid): Promise<void> {
    const { journal } = this.#parts;
    this.#seen.delete(hostUid);
    if (!journal.state.proved.has(hostUid)) return;
    await journal.append({ case: 'hostProved', value: { hostUid, deploymentId: noDeployment } });
  }

  /** Keeps the newest. */
  #note(hostUid: HostUid, kind: agent.HostSignKind, detail: string): void {
    const its = this.#seen.get(hostUid) ?? new Map<agent.HostSignKind, SeenSign>();
    its.set(kind, { kind, atMs: this.#parts.clock.nowMs(), detail });
    this.#seen.delete(hostUid);
    this.#seen.set(hostUid, its);
    const [oldest] = this.#seen.keys();
    if (this.#seen.size > seenHostsMax && oldest !== undefined) this.#seen.delete(oldest);
  }
}

function runOf(deploymentId: DeploymentId): number {
  return readDeploymentId(deploymentId)?.run ?? 0;
}
