/**
 * Questions to BMCs that wait for their agents. A question goes to the session of the rack that is
 * connected to this replica, is answered once, and is stored nowhere.
 *
 * 1. Only the rack that was asked may answer, and only for the host in question.
 * 2. Number and time are bounded; a question whose caller has gone ends.
 * 3. The secret goes to the agent before the question (`bmc-secret.ts`).
 */
import { create } from '@bufbuild/protobuf';
import { agent, type HostUid, type RackId } from '@rackwright/messages';
import type { Clock } from '@rackwright/platform';
import type { AuditSink } from '../../audit/index.ts';
import type { SessionRegistry } from '../../host/index.ts';
import type { CredentialOpener } from '../../secrets/index.ts';
import { giveBmcSecret } from './bmc-secret.ts';

/** Longest wait; the agent's own timeout is shorter. */
export const readWaitMs = 170_000;
export const readsMax = 512;
export const readsPerRackMax = 16;

/** `credentialVersion` of its BMC is filled in when the secret is opened. */
export type BmcQuestion = Omit<agent.ReadBmc, '$typeName' | '$unknown' | 'id'> & {
  readonly bmc: agent.BmcAccess;
};

export type BmcReadResult =
  | { readonly kind: 'answered'; readonly read: agent.BmcRead }
  /** No agent of the rack is connected here. */
  | { readonly kind: 'noAgent' }
  /** The agent does not support this question. */
  | { readonly kind: 'agentCannot' }
  /** The secret may not be sent there, or does not open; for people. */
  | { readonly kind: 'noSecret'; readonly message: string }
  | { readonly kind: 'tooMany'; readonly waiting: number }
  /** The agent disconnected or did not answer in time, or the caller has gone. */
  | { readonly kind: 'noAnswer' };

export interface BmcReadsDependencies extends CredentialOpener {
  readonly clock: Pick<Clock, 'after'>;
  readonly registry: SessionRegistry;
  readonly audit: AuditSink;
}

interface WaitingRead {
  readonly rackId: RackId;
  readonly hostUid: HostUid;
  readonly end: (result: BmcReadResult) => void;
}

export class BmcReads {
  readonly #deps: BmcReadsDependencies;
  readonly #waiting = new Map<string, WaitingRead>();
  #next = 1;

  constructor(deps: BmcReadsDependencies) {
    this.#deps = deps;
    deps.registry.onChange((rackId) => this.#gone(rackId));
  }

  /** Resolves when the answer has come, or none will come. */
  async ask(rackId: RackId, question: BmcQuestion, signal: AbortSignal): Promise<BmcReadResult> {
    const session = this.#deps.registry.sessionOf(rackId);
    if (session === undefined) return { kind: 'noAgent' };
    if (!session.bmcReads.includes(question.kind)) return { kind: 'agentCannot' };
    const waiting = [...this.#waiting.values()].filter((one) => one.rackId === rackId).length;
    if (this.#waiting.size >= readsMax || waiting >= readsPerRackMax) {
      return { kind: 'tooMany', waiting };
    }
    const { id, result, end } = this.#wait(rackId, question.hostUid, signal);
    try {
      const given = await giveBmcSecret(this.#deps, session, question.bmc);
      if (given.kind !== 'given') end(given);
      else if (this.#waiting.has(id)) {
        const bmc = { ...question.bmc, credentialVersion: given.version };
        const value = create(agent.ReadBmcSchema, { ...question, bmc, id });
        session.send({ case: 'readBmc', value });
      }
    } catch (error) {
      end({ kind: 'noAnswer' });
      throw error;
    }
    return await result;
  }

  /** An agent has answered. */
  receiveAnswer(rackId: RackId, read: agent.BmcRead): void {
    const waiting = this.#waiting.get(read.id);
    if (waiting?.rackId !== rackId || waiting.hostUid !== read.hostUid) return;
    waiting.end({ kind: 'answered', read });
  }

  /** It counts from now on, also while its secret is opened. */
  #wait(rackId: RackId, hostUid: HostUid, signal: AbortSignal) {
    const id = `${this.#next}`;
    this.#next += 1;
    const { promise, resolve } = Promise.withResolvers<BmcReadResult>();
    const cancel = this.#deps.clock.after(readWaitMs, () => end({ kind: 'noAnswer' }));
    const onAbort = (): void => end({ kind: 'noAnswer' });
    const end = (result: BmcReadResult): void => {
      this.#waiting.delete(id);
      cancel();
      signal.removeEventListener('abort', onAbort);
      resolve(result);
    };
    this.#waiting.set(id, { rackId, hostUid, end });
    signal.addEventListener('abort', onAbort, { once: true });
    if (signal.aborted) onAbort();
    return { id, result: promise, end };
  }

  /** The session of a rack has changed: its answers are lost. */
  #gone(rackId: RackId): void {
    for (const waiting of [...this.#waiting.values()]) {
      if (waiting.rackId === rackId) waiting.end({ kind: 'noAnswer' });
    }
  }
}
