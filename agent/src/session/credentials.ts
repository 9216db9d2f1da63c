/**
 * Secrets of operations, in memory only: nothing here is ever written, logged or put into an error.
 * Each is kept until a newer version comes, the last host that uses it is forgotten, no control
 * plane has been heard for `keptMs`, or the agent ends.
 *
 * Texts cannot be overwritten in this language: a dropped secret is gone once it is collected. So
 * that nothing of it reaches a disk, the service takes no core dumps.
 */
import type { CredentialName, HostUid } from '@rackwright/messages';
import type { Clock, Log } from '@rackwright/platform';
import type { Credential } from './executor.ts';

interface Waiter {
  readonly name: string;
  readonly version: bigint;
  give(credential: Credential): void;
}

export class Credentials {
  readonly #clock: Clock;
  readonly #log: Log;
  readonly #max: number;
  readonly #keptMs: number;
  readonly #values = new Map<CredentialName, Credential>();
  readonly #usersByName = new Map<CredentialName, Set<HostUid>>();
  readonly #waiters = new Set<Waiter>();
  #heardMs: number;
  #armed = false;

  constructor(clock: Clock, log: Log, max: number, keptMs: number) {
    this.#clock = clock;
    this.#log = log;
    this.#max = max;
    this.#keptMs = keptMs;
    this.#heardMs = clock.suspendAwareMs();
  }

  /** Keeps a secret, unless a newer version is known. */
  keep(credential: Credential): void {
    const { name, version } = credential;
    const known = this.#values.get(name);
    if (known !== undefined && known.version > version) return;
    if (known === undefined && this.#values.size >= this.#max) {
      this.#log.error({ credential: name, max: this.#max }, 'too many credentials; dropped one');
      return;
    }
    this.#values.set(name, credential);
    this.#arm();
    for (const waiter of [...this.#waiters]) {
      if (waiter.name === name && version >= waiter.version) waiter.give(credential);
    }
  }

  /** The control plane is connected: secrets are kept from here on for `keptMs`. */
  noteContact(): void {
    this.#heardMs = this.#clock.suspendAwareMs();
  }

  #arm(): void {
    if (this.#armed || this.#values.size === 0) return;
    this.#armed = true;
    const leftMs = this.#heardMs + this.#keptMs - this.#clock.suspendAwareMs();
    this.#clock.after(Math.max(0, leftMs), () => {
      this.#armed = false;
      const isOver = this.#heardMs + this.#keptMs <= this.#clock.suspendAwareMs();
      if (isOver && this.#values.size > 0) {
        this.#log.warn(
          { dropped: this.#values.size },
          'no control plane for long: no secrets kept',
        );
        this.startOver();
      }
      this.#arm();
    });
  }

  /** Notes that an operation of this host names the credential. */
  noteUse(name: string, hostUid: HostUid): void {
    const users = this.#usersByName.get(name) ?? new Set();
    this.#usersByName.set(name, users.add(hostUid));
  }

  /** Drops secrets that only this host used. */
  forgetHost(hostUid: HostUid): void {
    for (const [name, users] of this.#usersByName) {
      if (!users.delete(hostUid) || users.size > 0) continue;
      this.#usersByName.delete(name);
      this.#values.delete(name);
    }
  }

  /** Drops every secret: another store, or an older copy of it, counts versions anew. */
  startOver(): void {
    this.#values.clear();
  }

  /** The secret in this version or a newer one, if it is here. */
  find(name: string, version: bigint): Credential | undefined {
    const known = this.#values.get(name);
    return known !== undefined && known.version >= version ? known : undefined;
  }

  /** The secret in this version or a newer one; undefined after `waitMs`, or when aborted. */
  waitFor(
    name: string,
    version: bigint,
    waitMs: number,
    signal: AbortSignal,
  ): Promise<Credential | undefined> {
    const known = this.find(name, version);
    if (known !== undefined) return Promise.resolve(known);
    if (signal.aborted) return Promise.resolve(undefined);
    return new Promise((resolve) => {
      const finish = (credential?: Credential) => {
        this.#waiters.delete(waiter);
        signal.removeEventListener('abort', onAbort);
        cancelTimer();
        resolve(credential);
      };
      const waiter: Waiter = { name, version, give: finish };
      const onAbort = () => finish();
      const cancelTimer = this.#clock.after(waitMs, () => finish());
      this.#waiters.add(waiter);
      signal.addEventListener('abort', onAbort, { once: true });
    });
  }
}
