/**
 * What goes into and comes out of the host machine. Everything is a value: the machine decides,
 * the shell (`reconcile.ts`) acts.
 */
import type {
  AbandonedResource,
  agent,
  BmcEndpoint,
  DeletionMode,
  DeploySpec,
  ErasureDocumentKind,
  FailureName,
  FleetSpec,
  Freeze,
  HoldScope,
  HostRefusalName,
  HostSpec,
  HostState,
  HostUid,
  OperationId,
  PowerMismatchPolicy,
  RackFault,
  RackName,
  RerunClass,
  Revision,
  ShutdownPolicy,
  StepExit,
  store,
} from '@rackwright/messages';
import type { QuotaName, QuotaView, SlotChange } from './quota.ts';
import type { EngineTiming } from './timing.ts';

export interface Requester {
  /** "user:NAME" or "system". */
  readonly actor: string;
  /** Given again, the same request answers the same and is applied once. */
  readonly requestId?: string;
  /** May end what another person uses a host for; unset: no. */
  readonly mayEndOthersUse?: boolean;
  /** Of the call (W3C Trace Context); unset: it has none. */
  readonly traceParent?: string;
}

/** What a person may ask of a host. With a plan: refused unless it would do what the plan says. */
export type HostRequest = Asked & {
  readonly plan?: store.PlanRecord;
  /** Why the plan is started, for the timeline. */
  readonly planReason?: string;
};

type Asked =
  | { readonly kind: 'verify' }
  | { readonly kind: 'inspect' }
  /** No steps: the automatic plan. */
  | { readonly kind: 'clean'; readonly steps: readonly RequestedStep[] }
  | { readonly kind: 'service'; readonly steps: readonly RequestedStep[] }
  | WorkflowRequest
  | {
      readonly kind: 'provision' | 'reimage';
      /** By digest: "registry/repository@sha256:HEX", or a URL with its checksum. */
      readonly image: string;
      /** Unset: as it was deployed before, else as is usual. */
      readonly deploy?: DeploySpec;
      /** Wall time: a host in service that has not been taken out by then is not any more. */
      readonly notAfterMs?: number;
    }
  | { readonly kind: 'release' | 'rescue'; readonly reason: string }
  | { readonly kind: 'adopt'; readonly to: HostState; readonly reason: string }
  /** Boots from the disk; a dirty host needs a reason for that. */
  | { readonly kind: 'powerOn'; readonly bootOldDiskReason: string }
  | {
      readonly kind: 'powerReset';
      readonly bootOldDiskReason: string;
      /** Goes before the spec's, field by field. */
      readonly shutdown?: ShutdownPolicy;
    }
  | { readonly kind: 'powerOff'; readonly shutdown?: ShutdownPolicy }
  /** Ends the wait for a system to shut down: it is forced off. */
  | { readonly kind: 'skipWait' }
  /** A person says that they have switched the host, as its run asks. */
  | { readonly kind: 'confirmPower'; readonly on: boolean }
  | { readonly kind: 'abort'; readonly reason: string }
  /** Lets a run go on that waits for a person, with its present step or without it. */
  | { readonly kind: 'resume' | 'skip'; readonly reason: string }
  /**
   * What the goal waits for starts at once, also when it was given up. `poolGaveUp`: the pool that
   * holds the host has failed with it, and tries it again after this.
   */
  | { readonly kind: 'retry'; readonly poolGaveUp?: boolean }
  | { readonly kind: 'claim' | 'unclaim'; readonly reason: string }
  /** `untilMs`: wall time at which it ends by itself; undefined: a person lifts it. */
  | {
      readonly kind: 'hold';
      readonly scope: HoldScope;
      readonly reason: string;
      readonly untilMs: number | undefined;
    }
  /** `hold`: the hold's own reason; empty lifts all. */
  | {
      readonly kind: 'releaseHold';
      readonly hold: string;
      readonly reason: string;
      readonly physicallyDisconnected?: boolean;
    }
  | { readonly kind: 'delete'; readonly mode?: DeletionMode; readonly reason: string }
  | { readonly kind: 'cancelDelete'; readonly reason: string }
  /** A line in the timeline, and nothing else. */
  | { readonly kind: 'note'; readonly text: string }
  /** Spec and labels as they shall be: validated and merged already. */
  | {
      readonly kind: 'update';
      readonly spec: HostSpec;
      readonly labels: Readonly<Record<string, string>>;
      /** Hosts removed by force that had an address that is now this one's, by uid. */
      readonly fences?: readonly string[];
    };

export type RequestKind = HostRequest['kind'];

export interface RequestedStep {
  /** "interface.step" */
  readonly step: string;
  readonly arguments: Readonly<Record<string, string>>;
}

/** A template, rendered for this host: the run keeps it, whatever becomes of the template. */
export interface WorkflowRequest {
  readonly kind: 'workflow';
  /** "hosts/H/workflows/T/runs/N" */
  readonly workflowRun: string;
  /** Of the workflow, since another may bear its name later. */
  readonly workflowUid: string;
  /** SHA-256 of the template's source, lower-case hex. */
  readonly templateDigest: string;
  readonly steps: readonly WorkflowStep[];
  /** How long the run may take; undefined: as long as any run. */
  readonly timeoutMs: number | undefined;
  /** The use of the host that it was asked for in: it starts in no other. Undefined: in any. */
  readonly use?: store.HostUse | undefined;
}

/** A step of a rendered template. */
export interface WorkflowStep {
  /** Its own name, unique among them. */
  readonly title: string;
  /** "bmc" for a step that the rack's agent runs itself. */
  readonly action: string;
  /** run.script, powerOff, wait, webhook, or a BMC step's own name. */
  readonly step: string;
  readonly arguments: Readonly<Record<string, string>>;
  readonly retries: number;
  readonly timeoutMs: number | undefined;
  /** "fail", "continue", "hold" or the title of a handler. */
  readonly onFailure: string;
  readonly onTimeout: string;
  /** On earlier steps only; empty: always. */
  readonly condition: string;
  /** Set when it is known already that it does not run. */
  readonly skippedBecause: string;
  readonly handOff: boolean;
  readonly destructive: boolean;
  readonly rerunClass: RerunClass;
  readonly handler: boolean;
}

export type Refusal = RefusalOfHost | RefusalOfRequest;

/** By what the host is or does now. */
export interface RefusalOfHost {
  readonly code: 'failedPrecondition';
  readonly reason: HostRefusalName;
  readonly message: string;
  readonly fieldViolations?: undefined;
}

/** By what the request says itself. */
export interface RefusalOfRequest {
  readonly code: 'invalidArgument' | 'aborted';
  readonly message: string;
  readonly fieldViolations?: readonly { readonly field: string; readonly description: string }[];
}

export type HostEvent =
  /** A timer, a change elsewhere, the slow resync: look again. */
  | { readonly kind: 'tick' }
  /** Another replica wrote the host: it may have had no session to send by. */
  | { readonly kind: 'written' }
  | { readonly kind: 'request'; readonly request: HostRequest; readonly by: Requester }
  /** A result or facts from the rack's agent. */
  | { readonly kind: 'report'; readonly report: agent.Report }
  /** The agent introduced itself (rule R10); `listed` is what it knows of this host. */
  | {
      readonly kind: 'hello';
      readonly journal: agent.Journal;
      readonly listed: readonly agent.JournalledOperation[];
      /** Boot operations whose grants the agent holds; unset: it did not say. */
      readonly grants?: readonly string[];
    }
  /** The agent has dropped everything of this host. */
  | { readonly kind: 'forgotten' }
  /** What came of a webhook's call; one that is not under way any more changes nothing. */
  | { readonly kind: 'webhookResult'; readonly id: string; readonly result: CallResult };

export type CallResult =
  | { readonly kind: 'complete'; readonly output?: CallOutput }
  | {
      readonly kind: 'failed';
      /** As an agent's: exitCode when the receiver answered that it failed. */
      readonly type: FailureName;
      readonly message: string;
      readonly detail?: string;
      readonly output?: CallOutput;
    }
  /** It could not be told whether the receiver got it: made again under the same id. */
  | { readonly kind: 'transientError'; readonly message: string };

/** What the receiver answered; the exit code is the HTTP status. */
export interface CallOutput {
  readonly exit: StepExit;
  readonly tail: Uint8Array;
}

/** The rack's live session, as this replica knows it. */
export interface SessionContext {
  readonly journal: agent.Journal;
  /** When the last message of the session came. */
  readonly lastMessageMs: number;
  /** When the session began: before, the agent was away. */
  readonly openedMs: number;
  /** Hello announced a final report of the present operation that has not come yet. */
  readonly awaitsReport: boolean;
  /** What Hello named: nothing else is sent (R8). Unset: it is not known. */
  readonly operationKinds?: readonly string[];
}

/** A freeze that holds for the host, and whose it is: "racks/r1" or "the fleet". */
export type FreezeInForce = Readonly<Omit<Freeze, '$typeName' | '$unknown'>> & {
  readonly of: string;
};

/** Frozen surroundings of one step. */
export interface HostContext {
  readonly nowMs: number;
  readonly timing: EngineTiming;
  /** Undefined while the rack's agent is away. */
  readonly session: SessionContext | undefined;
  /** Another replica says that it holds the agent's stream: then nothing is said of its absence. */
  readonly sessionElsewhere: boolean;
  /** Wall time at which any replica is known to have heard the rack's agent last. */
  readonly agentSeenMs?: number;
  /** False when no agent of the rack has ever joined: then nobody has anything to forget. */
  readonly agentRegistered: boolean;
  /** Its key was taken away, and no other agent has joined since; unset: no. */
  readonly agentRevoked?: boolean;
  /** The rack's registered agent key (SPKI, DER). */
  readonly agentPublicKey: Uint8Array | undefined;
  /** Undefined when the credential that the host names does not exist. */
  readonly credentialVersion: bigint | undefined;
  readonly facts: store.HostFacts;
  /** Steps that the rack's agent runs itself; undefined before its first Hello. */
  readonly agentSteps: readonly agent.StepDescription[] | undefined;
  /** What holds for every rack; undefined: nothing has been set. */
  readonly fleet: FleetSpec | undefined;
  /** Versions of the credentials for registries that exist, by name; unset: of none. */
  readonly registryCredentials?: ReadonlyMap<string, bigint>;
  /** Identities in the report → the other host that holds them ("hosts/h2"). */
  readonly identityOwners: ReadonlyMap<string, string>;
  /** By the identity of a disk of the event's inventory: the other host that has it. */
  readonly disksElsewhere?: ReadonlyMap<string, string>;
  /** What signs, as certificates name it. */
  readonly software?: { readonly version: string; readonly buildSha256?: string };
  /**
   * Statements that a turn which was lost before its record was written has left, by the id under
   * which this turn would write its own. They stand, and the record cites them.
   */
  readonly standing?: ReadonlyMap<string, Uint8Array>;
  /** Whether the host holds every value that must be unique; without them it starts nothing. */
  readonly reservationsHeld: boolean;
  /** Hosts removed by force that the rack's agent has still to forget. */
  readonly tombstones: number;
  /** Of the hosts that fence this one off, by uid, those whose fence still stands. */
  readonly fencesPending: ReadonlySet<string>;
  /** What follows when the power is not what the spec says. */
  readonly powerMismatch: PowerMismatchPolicy;
  /** What is wrong on the rack's network, for explanations alone; unset: nothing. */
  readonly rackFaults?: readonly RackFault[];
  /** Keeps challenge places unpredictable from outside. */
  readonly incarnation: string;
  /** Set while the host's rack or the fleet is frozen. */
  readonly freeze: FreezeInForce | undefined;
  /** Why nothing is ordered before a person has accepted the restored store; undefined: it may. */
  readonly restored: string | undefined;
  /** A person has accepted it, and its agent has not heard of that yet. */
  readonly restoredAccepted: boolean;
  /** Revisions that were lost in all restorations; each run has taken at least one. */
  readonly lostRevisions?: Revision;
  /** The limits that are set, or in which a run of the host has a place. */
  readonly standings: readonly QuotaView[];
  /** Names the replica that decides; unset: there is only one. */
  readonly replica?: string;
}

export interface CertificateDraft {
  /** Identifier below "erasureCertificates/". */
  readonly id: string;
  readonly host: string;
  /** The exact bytes to sign. */
  readonly statement: Uint8Array;
}

/** A signed document that is no certificate. */
export interface DocumentDraft {
  /** "HOST_UID-REST", of what it is about: written again after a crash it is the same. */
  readonly id: string;
  readonly kind: ErasureDocumentKind;
  readonly host: string;
  readonly hostUid: HostUid;
  readonly certificates: readonly string[];
  readonly useEpoch: bigint;
  /** The exact bytes to sign. */
  readonly statement: Uint8Array;
}

export type AnswerVerdict =
  | { readonly kind: 'applied' }
  | { readonly kind: 'duplicate' }
  | { readonly kind: 'stale'; readonly reason: string }
  | { readonly kind: 'refused'; readonly reason: string };

export type HostEffect =
  /** Create-only evidence; durable before the record that cites it. */
  | { readonly kind: 'certify'; readonly certificates: readonly CertificateDraft[] }
  /** Create-only, durable before the record that follows from it. */
  | { readonly kind: 'document'; readonly documents: readonly DocumentDraft[] }
  /** What a step's program wrote last; create-only, durable before the record that has it ended. */
  | {
      readonly kind: 'stepOutput';
      readonly operationId: OperationId;
      readonly exit: StepExit;
      readonly tail: Uint8Array;
    }
  /** After the record is durable; asked for again until its result is in, under the same id. */
  | {
      readonly kind: 'callWebhook';
      /** "<host uid>/<run>/<step>/<attempt>": the receiver's idempotency key. */
      readonly id: string;
      readonly arguments: Readonly<Record<string, string>>;
      /** Wall time after which nobody waits for its answer any more. */
      readonly deadlineMs: number;
      /** Of the host: what its secrets are given for. */
      readonly rack: RackName;
    }
  /** What was observed anew, beside which all else stands; written only when it differs. */
  | { readonly kind: 'facts'; readonly facts: Partial<store.HostFacts> }
  /** After the record is durable (rule R3). */
  | { readonly kind: 'send'; readonly operation: agent.Operation }
  /** Asks the agent to stop an operation; stored as an intent in the record already. */
  | { readonly kind: 'cancel'; readonly operationId: OperationId; readonly cancelId: string }
  | { readonly kind: 'answer'; readonly verdict: AnswerVerdict }
  /** Percent of the present step: memory only. */
  | { readonly kind: 'progress'; readonly continuing: agent.Continuing }
  /** The host is another machine now: the old one's identity may be somebody else's. */
  | { readonly kind: 'releaseIdentity'; readonly guid: Uint8Array }
  /** What a forced removal leaves; durable before the record goes, under a deterministic name. */
  | {
      readonly kind: 'abandon';
      readonly resource: AbandonedResource;
      readonly bmc: BmcEndpoint | undefined;
    }
  /** The rack remembers, before the record goes, that its agent must still forget the host. */
  | { readonly kind: 'tombstone' }
  /** A place in a limit; after the record is durable. */
  | { readonly kind: 'quota'; readonly name: QuotaName; readonly change: SlotChange }
  /** The agent shall forget this host; the record waits for its answer. */
  | { readonly kind: 'forget' };

export type HostOutcome =
  | {
      readonly kind: 'kept';
      readonly record: store.HostRecord;
      readonly effects: readonly HostEffect[];
    }
  | {
      readonly kind: 'removed';
      /** As it is when it goes. */
      readonly record: store.HostRecord;
      readonly effects: readonly HostEffect[];
    }
  | { readonly kind: 'refused'; readonly refusal: Refusal };
