/**
 * The agent's gRPC server for the runners in the ramdisks that it booted.
 *
 * Invariants:
 * 1. No message of a stream takes effect before its Hello has been judged. A peer without a Hello
 *    in time is disconnected, and the number of such peers is bounded.
 * 2. A key is bound to its grant durably before the runner is accepted.
 * 3. Facts are published only of accepted runners.
 */
import type { MessageInitShape } from '@bufbuild/protobuf';
import {
  type agent,
  bind,
  type CallContext,
  type HostUid,
  type OperationId,
  type RunnerSessionId,
  runner,
} from '@rackwright/messages';
import type { Clock, Log, Random } from '@rackwright/platform';
import type { RpcServer } from '@rackwright/rpc';
import type { BootGrantState } from '../session/index.ts';
import type { BootCertificate } from './certificate.ts';
import type { RunnerDispatcher } from './dispatcher.ts';
import { defaultExchangeLimits, type ExchangeLimits, Exchanges } from './exchange.ts';
import { judgeHello, runnerSessionId } from './hello.ts';
import type { RunnerLink, ToRunner } from './link.ts';
import { MessageQueue } from './message-queue.ts';
import { type DiscoveryObserver, serveDiscovered } from './stranger.ts';

/** The gateway's calls of the session. */
export interface RunnerGrants {
  byToken(token: string): BootGrantState | undefined;
  bind(
    operationId: OperationId,
    publicKey: Uint8Array,
  ): Promise<'bound' | 'otherKey' | 'noGrant' | 'expired'>;
  /** No runner may use its token any more, in no later life of the agent either. */
  close(operationId: OperationId): Promise<void>;
}

export interface RunnerFacts {
  runnerReady(
    hostUid: HostUid,
    ready: Omit<MessageInitShape<typeof agent.RunnerReadySchema>, '$typeName'>,
  ): void;
  runnerGone(hostUid: HostUid, runnerSession: RunnerSessionId): void;
  /** Reports why the runner of this boot is missing to the operation that waits for it. */
  runnerRefused(hostUid: HostUid, bootOperationId: OperationId, message: string): void;
}

export interface GatewayLimits {
  readonly helloTimeoutMs: number;
  /** Streams before their Hello. */
  readonly strangersMax: number;
  /** Messages waiting for one runner. */
  readonly outgoingMessagesMax: number;
  readonly exchanges: ExchangeLimits;
}

export const defaultGatewayLimits: GatewayLimits = {
  helloTimeoutMs: 10_000,
  strangersMax: 256,
  outgoingMessagesMax: 64,
  exchanges: defaultExchangeLimits,
};

export interface GatewayParts {
  readonly clock: Clock;
  readonly random: Random;
  readonly log: Log;
  readonly grants: RunnerGrants;
  readonly facts: RunnerFacts;
  readonly dispatcher: RunnerDispatcher;
  /** Receives the findings of runners on machines that are no hosts; without it there are none. */
  readonly strangers?: DiscoveryObserver;
  /**
   * The agent's address for fetches of images, "host:port", by the local address that the runner
   * has dialled; absent or empty: none.
   */
  readonly imageEndpoint?: (localAddress: string) => string;
  readonly limits: GatewayLimits;
}

const nonceBytes = 32;
const claimedTwice =
  'two machines have presented the token of this boot: the host was booted again, or one of them ' +
  'is not the host; see who is on the provisioning network';

export class RunnerGateway {
  readonly #parts: GatewayParts;
  readonly #exchanges: Exchanges;
  #awaitingHello = 0;

  constructor(parts: GatewayParts) {
    this.#parts = parts;
    const { clock, random, limits, grants, dispatcher } = parts;
    this.#exchanges = new Exchanges({
      ...{ clock, random, limits: limits.exchanges },
      orderOf: (bootToken, operationId) => {
        const boot = grants.byToken(bootToken)?.operationId;
        return boot === undefined ? undefined : dispatcher.networkBurnIn(boot, operationId);
      },
    });
  }

  /** Listens; answers with the port and how to close. */
  async listen(address: string, port: number, certificate: BootCertificate): Promise<RpcServer> {
    const { clock, log, random } = this.#parts;
    const { serve, sessionKeepalive } = await import('../rpc.ts');
    return serve({
      address,
      port,
      limits: sessionKeepalive,
      tls: {
        privateKeyPem: certificate.privateKeyPem,
        certificateChainPem: certificate.certificatePem,
      },
      services: [
        bind(runner.RunnerService, {
          session: (requests, context) => this.session(requests, context),
          exchange: (requests, { signal }) => this.#exchanges.serve(requests, signal),
        }),
      ],
      log,
      clock,
      random,
    });
  }

  /** One runner's stream: its messages in, ours out. */
  async *session(
    requests: AsyncIterable<runner.SessionRequest>,
    call: Pick<CallContext, 'signal' | 'peerAddress' | 'localAddress'>,
  ): AsyncGenerator<{ message: ToRunner }, void, undefined> {
    const { limits, random } = this.#parts;
    if (this.#awaitingHello >= limits.strangersMax) {
      yield refused('too many runners are saying hello at once: try again');
      return;
    }
    const incoming = requests[Symbol.asyncIterator]();
    const nonce = random.bytes(nonceBytes);
    yield { message: { case: 'challenge', value: { nonce } } };
    this.#awaitingHello += 1;
    let admission: Admission;
    try {
      admission = await this.#admit(incoming, nonce, call.signal);
    } finally {
      this.#awaitingHello -= 1;
    }
    switch (admission.kind) {
      case 'refused': {
        const { reason } = admission;
        this.#parts.log.warn({ peer: call.peerAddress, reason }, 'a runner was refused');
        yield refused(reason);
        return;
      }
      case 'admitted':
        yield* this.#serve(admission.runner, incoming, call.localAddress ?? '');
    }
  }

  async #admit(
    incoming: AsyncIterator<runner.SessionRequest>,
    nonce: Uint8Array,
    signal: AbortSignal,
  ): Promise<Admission> {
    const first = await this.#firstMessage(incoming, signal);
    if (first?.message.case !== 'hello') {
      return notAdmitted('the first message has to be Hello, in time');
    }
    const hello = first.message.value;
    const { grants, dispatcher, clock, facts } = this.#parts;
    const grant = grants.byToken(hello.bootToken);
    const receivedAtMs = clock.nowMs();
    const receivedSuspendAwareMs = clock.suspendAwareMs();
    const decision = judgeHello(hello, { nonce, grant, receivedAtMs, receivedSuspendAwareMs });
    if (decision.kind === 'refuse') {
      if (grant !== undefined && decision.isProved) {
        facts.runnerRefused(grant.hostUid, grant.operationId, decision.message);
      }
      return notAdmitted(decision.message);
    }
    const disowned = dispatcher.disowned(decision.grant.operationId);
    if (disowned !== undefined) return notAdmitted(disowned.text);
    if (decision.kind === 'otherKey') {
      await this.#claimedAgain(decision.grant, receivedAtMs);
      return notAdmitted(decision.message);
    }
    const bound = await grants.bind(decision.grant.operationId, hello.publicKey);
    if (bound !== 'bound') return notAdmitted(bindRefusals[bound]);
    return { kind: 'admitted', runner: { hello, grant: decision.grant } };
  }

  /**
   * A machine presents the token with a new key. It has been booted again, or it is not the host,
   * or the runner that has bound the boot is not. While machines may boot by that token, each of
   * these cases ends the boot, also for the connected runner, and also after a restart of the
   * agent: no report of a boot that two runners claim is accepted.
   */
  async #claimedAgain(grant: BootGrantState, receivedAtMs: number): Promise<void> {
    const { grants, dispatcher, facts, log } = this.#parts;
    const { operationId, hostUid, expiresAtMs } = grant;
    if (!dispatcher.isLinked(operationId))
      dispatcher.endBoot(operationId, 'the host was booted again');
    else if (receivedAtMs <= expiresAtMs) {
      dispatcher.disown(operationId, claimedTwice);
      facts.runnerRefused(hostUid, operationId, claimedTwice);
      await grants.close(operationId).catch((error: unknown) => {
        const text = 'a boot that two have claimed could not be closed';
        log.error({ operation: operationId }, text, error);
      });
    }
  }

  async *#serve(
    { hello, grant }: AdmittedRunner,
    incoming: AsyncIterator<runner.SessionRequest>,
    localAddress: string,
  ): AsyncGenerator<{ message: ToRunner }, void, undefined> {
    const { dispatcher, facts, limits, log } = this.#parts;
    const { operationId: bootOperationId, hostUid, hostName } = grant;
    if (grant.discovery === true) {
      yield* this.#serveDiscovered({ hello, grant }, incoming);
      return;
    }
    const imageEndpoint = this.#parts.imageEndpoint?.(localAddress) ?? '';
    const outgoing = new MessageQueue<{ message: ToRunner }>(limits.outgoingMessagesMax);
    const runnerSession = runnerSessionId(bootOperationId, hello.publicKey);
    const link: RunnerLink = {
      bootOperationId,
      hostUid,
      runnerSession,
      steps: takenSteps(hello, grant).map(({ name }) => name),
      architecture: hello.architecture,
      imageEndpoint,
      rescue: grant.rescue === true,
      unreceived: new Set(hello.unreceivedOperationIds),
      send: (message) => void outgoing.push({ message }),
      close: () => outgoing.end(),
    };
    log.info({ host: hostName, operation: bootOperationId, runnerSession }, 'runner connected');
    const accepted = { runnerSession, hostName, imageEndpoint, answersBegin: true };
    yield { message: { case: 'accepted', value: accepted } };
    dispatcher.attach(link);
    // One that a step takes away is there, but takes nothing any more.
    if (grant.handedOff === undefined) {
      facts.runnerReady(hostUid, readyFacts(hello, grant, runnerSession));
    }
    this.#read(link, incoming)
      .catch((error: unknown) =>
        log.error(
          { host: hostName, runnerSession },
          'a report of a runner cannot be processed',
          error,
        ),
      )
      .finally(() => outgoing.end());
    try {
      yield* outgoing;
    } finally {
      if (dispatcher.detach(link)) {
        log.info({ host: hostName, runnerSession }, 'runner disconnected');
        facts.runnerGone(hostUid, runnerSession);
      }
    }
  }

  /** It is no host: it takes no order of the dispatcher's, and no fact is published of it. */
  async *#serveDiscovered(
    { hello, grant }: AdmittedRunner,
    incoming: AsyncIterator<runner.SessionRequest>,
  ): AsyncGenerator<{ message: ToRunner }, void, undefined> {
    const { strangers, log } = this.#parts;
    const { operationId } = grant;
    if (strangers === undefined) {
      yield refused('machines that are no hosts are not wanted here');
      return;
    }
    const runnerSession = runnerSessionId(operationId, hello.publicKey);
    log.info({ operation: operationId, runnerSession }, 'runner of no host connected');
    const boot = { operationId, runnerSession, bmcAddress: hello.bmcAddress };
    yield* serveDiscovered(strangers, boot, incoming);
  }

  /** Takes reports until the stream ends; a broken stream is an end like any other. */
  async #read(link: RunnerLink, incoming: AsyncIterator<runner.SessionRequest>): Promise<void> {
    let evidence: agent.StepEvidence | undefined;
    for (;;) {
      const next = await incoming.next().catch((cause: unknown) => {
        this.#parts.log.debug({}, 'a runner stream broke', cause);
        return { done: true, value: undefined } as const;
      });
      if (next.done === true) return;
      const { message } = next.value;
      if (message.case === 'evidence') evidence = message.value;
      if (message.case === 'askToBegin') this.#parts.dispatcher.answerBegin(link, message.value);
      if (message.case === 'stepLog') this.#parts.dispatcher.log(link, message.value);
      if (message.case !== 'report') continue;
      const report = message.value;
      const fits = evidence?.operationId === report.operationId ? evidence : undefined;
      this.#parts.dispatcher.report(link, report, fits);
      if (fits !== undefined) evidence = undefined;
    }
  }

  /** Undefined when the time is over, the stream has ended or broken. */
  #firstMessage(
    incoming: AsyncIterator<runner.SessionRequest>,
    signal: AbortSignal,
  ): Promise<runner.SessionRequest | undefined> {
    const { clock, limits } = this.#parts;
    return new Promise((resolve) => {
      const settle = (message: runner.SessionRequest | undefined): void => {
        cancel();
        signal.removeEventListener('abort', none);
        resolve(message);
      };
      const none = (): void => settle(undefined);
      const cancel = clock.after(limits.helloTimeoutMs, none);
      signal.addEventListener('abort', none, { once: true });
      incoming.next().then((next) => settle(next.done === true ? undefined : next.value), none);
    });
  }
}

interface AdmittedRunner {
  readonly hello: runner.Hello;
  readonly grant: BootGrantState;
}

type Admission =
  | { readonly kind: 'admitted'; readonly runner: AdmittedRunner }
  | { readonly kind: 'refused'; readonly reason: string };

function notAdmitted(reason: string): Admission {
  return { kind: 'refused', reason };
}

const bindRefusals = {
  otherKey: 'another runner has used this boot token: boot the host again',
  noGrant: 'the boot token is not known: boot the host again',
  expired: 'the boot token has expired: boot the host again',
} as const;

function refused(message: string): { message: ToRunner } {
  return { message: { case: 'refused', value: { message } } };
}

/** In rescue none is: nothing but a person touches the host there. */
function takenSteps({ steps }: runner.Hello, { rescue }: BootGrantState): runner.Hello['steps'] {
  return rescue === true ? [] : steps;
}

function readyFacts(hello: runner.Hello, grant: BootGrantState, runnerSession: RunnerSessionId) {
  const { bootId, runnerVersion, system } = hello;
  return {
    hostUid: grant.hostUid,
    bootOperationId: grant.operationId,
    runnerSession,
    bootId,
    runnerVersion,
    steps: takenSteps(hello, grant),
    ...(system === undefined ? {} : { system }),
  };
}
