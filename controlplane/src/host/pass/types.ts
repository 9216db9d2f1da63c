/**
 * The inputs and outputs of the host's state machine. Everything is a value: the machine decides,
 * the shell (`reconcile.ts`) acts.
 */
import type {
  AbandonedResource,
  Actor,
  agent,
  BmcEndpoint,
  CredentialName,
  DeletionMode,
  DeploySpec,
  ErasureDocumentKind,
  FailureName,
  FleetSpec,
  Freeze,
  HoldScope,
  HostName,
  HostRefusalName,
  HostSpec,
  HostState,
  HostUid,
  Incarnation,
  OperationId,
  PowerMismatchPolicy,
  RackFault,
  RackName,
  RequestId,
  RerunClass,
  Revision,
  ShutdownPolicy,
  SkipCause,
  StepExit,
  store,
  WorkflowUid,
} from '@rackwright/messages';
import type { QuotaName, QuotaView, SlotChange } from './quota.ts';
import type { EngineTiming } from './timing.ts';

export interface Requester {
  /** "user:NAME" or "system". */
  readonly actor: Actor;
  /** A repeated request with the same id gets the same response and is applied once. */
  readonly requestId?: RequestId;
  /** Whether it may end another person's use of the host; unset: no. */
  readonly mayEndOthersUse?: boolean;
  /** The trace parent of the call (W3C Trace Context); unset: none. */
  readonly traceParent?: string;
}

/** A request to a host. With a plan: refused unless it would do what the plan says. */
export type HostRequest = RequestedAction & { readonly plan?: StartedPlan };

/** A plan that a request starts. */
export interface StartedPlan {
  readonly record: store.PlanRecord;
  /** Why it is started, for the timeline; empty: nobody has given a reason. */
  readonly reason: string;
}

type RequestedAction =
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
      /** Unset: as deployed before, otherwise the defaults. */
      readonly deploy?: DeploySpec;
      /** Wall time: after it, a host in service is no longer taken out of service. */
      readonly notAfterMs?: number;
    }
  | { readonly kind: 'release' | 'rescue'; readonly reason: string }
  | { readonly kind: 'adopt'; readonly to: HostState; readonly reason: string }
  /** Boots from the disk; a dirty host needs a reason for that. */
  | { readonly kind: 'powerOn'; readonly bootOldDiskReason: string }
  | {
      readonly kind: 'powerReset';
      readonly bootOldDiskReason: string;
      /** Overrides the spec's policy, field by field. */
      readonly shutdown?: ShutdownPolicy;
    }
  | { readonly kind: 'powerOff'; readonly shutdown?: ShutdownPolicy }
  /** Ends the wait for a system to shut down: it is forced off. */
  | { readonly kind: 'skipWait' }
  /** A person reports that they have switched the host, as its run requested. */
  | { readonly kind: 'confirmPower'; readonly on: boolean }
  | { readonly kind: 'abort'; readonly reason: string }
  /** Releases a run that waits for a person, with its present step or without it. */
  | { readonly kind: 'resume' | 'skip'; readonly reason: string }
  /**
   * Work that the goal waits for starts at once, even if the goal was given up. `poolGaveUp`: the
   * pool that holds the host has given up on it, and tries again after this.
   */
  | { readonly kind: 'retry'; readonly poolGaveUp?: boolean }
  | { readonly kind: 'claim' | 'unclaim'; readonly reason: string }
  /** `untilMs`: the expiry in wall time; undefined: only a person lifts it. */
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
  /** The new spec and labels: already validated and merged. */
  | {
      readonly kind: 'update';
      readonly spec: HostSpec;
      readonly labels: Readonly<Record<string, string>>;
      /** Uids of forcibly removed hosts that had an address which now belongs to this one. */
      readonly fences?: readonly HostUid[];
    };

export type RequestKind = HostRequest['kind'];

export interface RequestedStep {
  /** "interface.step" */
  readonly step: string;
  readonly arguments: Readonly<Record<string, string>>;
}

/** A template, rendered for this host: the run keeps it, even if the template changes. */
export interface WorkflowRequest {
  readonly kind: 'workflow';
  /** "hosts/H/workflows/T/runs/N" */
  readonly workflowRun: string;
  /** The uid of the workflow, because another one may later have its name. */
  readonly workflowUid: WorkflowUid;
  /** SHA-256 of the template's source, lower-case hex. */
  readonly templateDigest: string;
  readonly steps: readonly WorkflowStep[];
  /** The longest run time; undefined: as for any run. */
  readonly timeoutMs: number | undefined;
  /**
   * The use of the host at the time of the request: the run starts in no other use. Undefined: in
   * any.
   */
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
  /** Refers only to earlier steps; empty: always. */
  readonly condition: string;
  /** Set when it is already known that the step does not run. */
  readonly skipCause: SkipCause;
  /** The same, for people. */
  readonly skippedBecause: string;
  readonly handOff: boolean;
  readonly destructive: boolean;
  readonly rerunClass: RerunClass;
  readonly handler: boolean;
}

export type Refusal = RefusalOfHost | RefusalOfRequest;

/** Because of the host's state or work. */
export interface RefusalOfHost {
  readonly code: 'failedPrecondition';
  readonly reason: HostRefusalName;
  readonly message: string;
  readonly fieldViolations?: undefined;
}

/** Because of the request itself. */
export interface RefusalOfRequest {
  readonly code: 'invalidArgument' | 'aborted';
  readonly message: string;
  readonly fieldViolations?: readonly { readonly field: string; readonly description: string }[];
}

export type HostEvent =
  /** A timer, a change elsewhere, the slow resync: reconcile. */
  | { readonly kind: 'tick' }
  /** Another replica wrote the host: it may have had no session for sending. */
  | { readonly kind: 'written' }
  | { readonly kind: 'request'; readonly request: HostRequest; readonly by: Requester }
  /** A result or facts from the rack's agent. */
  | { readonly kind: 'report'; readonly report: agent.Report }
  /** The agent introduced itself (rule R10); `listed` is its knowledge of this host. */
  | {
      readonly kind: 'hello';
      readonly journal: agent.Journal;
      readonly listed: readonly agent.JournalledOperation[];
      /** Boot operations whose grants the agent holds; unset: unknown. */
      readonly grants?: readonly OperationId[];
    }
  /** The agent has dropped all data of this host. */
  | { readonly kind: 'forgotten' }
  /**
   * The result of a webhook's call; for a call that is no longer in progress it changes nothing.
   */
  | { readonly kind: 'webhookResult'; readonly id: OperationId; readonly result: CallResult };

export type CallResult =
  | { readonly kind: 'complete'; readonly output?: CallOutput }
  | {
      readonly kind: 'failed';
      /** As for an agent: exitCode when the receiver answered that it failed. */
      readonly type: FailureName;
      readonly message: string;
      readonly detail?: string;
      readonly output?: CallOutput;
    }
  /** It is unknown whether the receiver got it: repeated under the same id. */
  | { readonly kind: 'transientError'; readonly message: string };

/** The receiver's response; the exit code is the HTTP status. */
export interface CallOutput {
  readonly exit: StepExit;
  readonly tail: Uint8Array;
}

/** The live session of the rack, as this replica knew it at the time. */
export interface SessionSnapshot {
  readonly journal: agent.Journal;
  /** When the last message of the session came. */
  readonly lastMessageMs: number;
  /** When the session began: before, the agent was away. */
  readonly openedMs: number;
  /** Hello announced a final report of the present operation that has not come yet. */
  readonly awaitsReport: boolean;
  /** The operation kinds in its Hello: nothing else is sent (R8). Unset: unknown. */
  readonly operationKinds?: readonly string[];
}

/** The kinds of brakes that an agent enforces by its lease. */
export type LeaseBrakeKind = 'freeze' | 'restoredStore' | 'restoredStoreAccepted';

/** What keeps work in a rack from beginning. */
export interface Brake<Kind extends string = LeaseBrakeKind | 'agentAway'> {
  readonly kind: Kind;
  /** For people. */
  readonly text: string;
  /** Tells it apart from a later one of its kind. */
  readonly sinceMs: number | undefined;
}

export type FreezeInForce = Readonly<Omit<Freeze, '$typeName' | '$unknown'>> & {
  readonly of: string;
};

/** What one pass over a host decides upon, read together; never changed. */
export interface HostSnapshot {
  readonly nowMs: number;
  readonly timing: EngineTiming;
  /** Undefined while the rack's agent is away. */
  readonly session: SessionSnapshot | undefined;
  /**
   * Another replica has the agent's stream by its own hint: then its absence is not reported here.
   */
  readonly sessionElsewhere: boolean;
  /** The latest wall time at which any replica is known to have heard the rack's agent. */
  readonly agentSeenMs?: number;
  /** False when no agent of the rack has ever enrolled: then no agent has anything to forget. */
  readonly agentRegistered: boolean;
  /** Its key was revoked, and no other agent has enrolled since; unset: no. */
  readonly agentRevoked?: boolean;
  /** The rack's registered agent key (SPKI, DER). */
  readonly agentPublicKey: Uint8Array | undefined;
  /** Undefined when the credential that the host names does not exist. */
  readonly credentialVersion: bigint | undefined;
  readonly facts: store.HostFacts;
  /** Steps that the rack's agent runs itself; undefined before its first Hello. */
  readonly agentSteps: readonly agent.StepDescription[] | undefined;
  /** The settings for every rack; undefined: nothing is set. */
  readonly fleet: FleetSpec | undefined;
  /** Versions of the existing credentials for registries, by name; unset: none. */
  readonly registryCredentials?: ReadonlyMap<CredentialName, bigint>;
  /** Identities in the report → the other host that holds each of them ("hosts/h2"). */
  readonly identityOwners: ReadonlyMap<string, HostName>;
  /** By the identity of a disk in the event's inventory: the other host that has it. */
  readonly disksElsewhere?: ReadonlyMap<string, HostName>;
  /** The signing software, as certificates name it. */
  readonly software?: { readonly version: string; readonly buildSha256?: string };
  /**
   * Statements of a pass that was lost before its record was written, by the ids that this pass
   * would use. They stay, and the record cites them.
   */
  readonly keptStatements?: ReadonlyMap<string, Uint8Array>;
  /** Whether the host holds every value that must be unique; without them it starts nothing. */
  readonly hasReservations: boolean;
  /** The number of forcibly removed hosts that the rack's agent still has to forget. */
  readonly tombstones: number;
  /** Of the hosts that fence this one off, by uid, those whose fence still exists. */
  readonly fencesPending: ReadonlySet<HostUid>;
  /** Further hosts that fence this one off, from an address that it is to take; unset: none. */
  readonly fencesFound?: readonly HostUid[];
  /** The reaction when the power differs from the spec. */
  readonly powerMismatch: PowerMismatchPolicy;
  /** Faults of the rack's network, only for explanations; unset: none. */
  readonly rackFaults?: readonly RackFault[];
  /** Keeps challenge locations unpredictable from outside. */
  readonly incarnation: Incarnation;
  /** Set while the host's rack or the fleet is frozen. */
  readonly freeze: FreezeInForce | undefined;
  /**
   * Why nothing is ordered before a person has accepted the restored store; undefined: orders are
   * permitted.
   */
  readonly restored: string | undefined;
  /** A person has accepted it, and its agent does not know that yet. */
  readonly restoredAccepted: boolean;
  /** Revisions lost in all restores; each run has used at least one. */
  readonly lostRevisions?: Revision;
  /** The configured limits, and those in which a run of the host has a slot. */
  readonly quotaViews: readonly QuotaView[];
  /** The replica that decides; unset: there is only one. */
  readonly replica?: string;
}

export interface CertificateDraft {
  /** Identifier below "erasureCertificates/". */
  readonly id: string;
  readonly host: HostName;
  /** The exact bytes to sign. */
  readonly statement: Uint8Array;
}

/** A signed document other than a certificate. */
export interface DocumentDraft {
  /** "HOST_UID-REST", from its subject: a repeated write after a crash has the same id. */
  readonly id: string;
  readonly kind: ErasureDocumentKind;
  readonly host: HostName;
  readonly hostUid: HostUid;
  readonly certificates: readonly string[];
  readonly useEpoch: bigint;
  /** The exact bytes to sign. */
  readonly statement: Uint8Array;
}

/** The answer to a report. Code decides by `kind` and `cause`; `reason` is for people. */
export type ReportVerdict =
  | { readonly kind: 'applied' }
  | { readonly kind: 'duplicate' }
  | { readonly kind: 'stale'; readonly cause: StaleCause; readonly reason: string }
  | { readonly kind: 'refused'; readonly cause: ReportRefusal; readonly reason: string };

/**
 * `attemptOver`: its attempt ended without it. `runOver`: its run is over, and its step must not
 * act. `settled`: its operation was settled before.
 */
export type StaleCause = 'attemptOver' | 'runOver' | 'settled';

/**
 * `unsupported`: its result is not understood. `notOfHost`, `neverStarted`: its operation cannot
 * be one of this host. `notFinal`: it ends no attempt, so it has no answer.
 */
export type ReportRefusal = 'unsupported' | 'notOfHost' | 'neverStarted' | 'notFinal';

export type HostEffect =
  /** Create-only evidence; durable before the record that cites it. */
  | { readonly kind: 'certify'; readonly certificates: readonly CertificateDraft[] }
  /** Create-only, durable before the record that follows from it. */
  | { readonly kind: 'document'; readonly documents: readonly DocumentDraft[] }
  /**
   * The last output of a step's program; create-only, durable before the record with the step's
   * end.
   */
  | {
      readonly kind: 'stepOutput';
      readonly operationId: OperationId;
      readonly exit: StepExit;
      readonly tail: Uint8Array;
    }
  /** After the record is durable; repeated until its result is in, under the same id. */
  | {
      readonly kind: 'callWebhook';
      /** The receiver's idempotency key. */
      readonly id: OperationId;
      readonly arguments: Readonly<Record<string, string>>;
      /** Wall time after which the answer is no longer awaited. */
      readonly deadlineMs: number;
      /** The rack of the host: secrets are released for it. */
      readonly rack: RackName;
    }
  /** New observations; all other facts stay; written only when they differ. */
  | { readonly kind: 'facts'; readonly facts: Partial<store.HostFacts> }
  /** After the record is durable (rule R3). */
  | { readonly kind: 'send'; readonly operation: agent.Operation }
  /** Asks the agent to stop an operation; the record already has the intent. */
  | { readonly kind: 'cancel'; readonly operationId: OperationId; readonly cancelId: OperationId }
  | { readonly kind: 'answer'; readonly verdict: ReportVerdict }
  /** Percent of the present step: only in memory. */
  | { readonly kind: 'progress'; readonly continuing: agent.Continuing }
  /** The host is another machine now: another host may own the old one's identity. */
  | { readonly kind: 'releaseIdentity'; readonly guid: Uint8Array }
  /**
   * The remains of a forced removal; durable before the record is deleted, under a deterministic
   * name.
   */
  | {
      readonly kind: 'abandon';
      readonly resource: AbandonedResource;
      readonly bmc: BmcEndpoint | undefined;
    }
  /**
   * The rack's record has, before the host's is deleted, that its agent must still forget the host.
   */
  | { readonly kind: 'tombstone' }
  /** A slot of a limit; after the record is durable. */
  | { readonly kind: 'quota'; readonly name: QuotaName; readonly change: SlotChange }
  /** The agent must forget this host; the record waits for its answer. */
  | { readonly kind: 'forget' };

export type HostDecision =
  | {
      readonly kind: 'kept';
      readonly record: store.HostRecord;
      readonly effects: readonly HostEffect[];
    }
  | {
      readonly kind: 'removed';
      /** The last record before the deletion. */
      readonly record: store.HostRecord;
      readonly effects: readonly HostEffect[];
    }
  | { readonly kind: 'refused'; readonly refusal: Refusal };
