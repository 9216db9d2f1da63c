/**
 * What kind of thing an id names. Nothing of an opaque text can be checked. So an id has its kind
 * from where it was decoded or made, and the compiler refuses it where another kind is meant; a
 * plain text is still taken. Generated messages have these types, too (`test/tidy/ids.ts`).
 *
 * An id with a brand is made by its function here alone: no plain text or number is taken for it.
 */

/** A host for ever: a host that is created again under the same name has another. */
export type HostUid = string & { readonly __kind?: 'HostUid' };

/**
 * "<host uid>/<run>/<step>/<attempt>": one attempt. The agent's own ids, such as that of a cancel,
 * are below it.
 */
export type OperationId = string & { readonly __kind?: 'OperationId' };

/**
 * The name of a host without its collection: "web-1". The line that expects the host has it, too.
 */
export type HostId = string & { readonly __kind?: 'HostId' };

/** The name of a host: "hosts/web-1". */
export type HostName = string & { readonly __kind?: 'HostName' };

/** The name of a rack without its collection: "r1". */
export type RackId = string & { readonly __kind?: 'RackId' };

/** The name of a rack: "racks/r1". */
export type RackName = string & { readonly __kind?: 'RackName' };

/** The name of a credential: "credentials/bmc-admin". */
export type CredentialName = string & { readonly __kind?: 'CredentialName' };

/** The name of an event sink without its collection: "pager". */
export type SinkId = string & { readonly __kind?: 'SinkId' };

/** One event: its sinks know a repetition by it. */
export type EventId = string & { readonly __kind?: 'EventId' };

/** The name of a discovered machine without its collection: "u-4c4c4544…". */
export type MachineId = string & { readonly __kind?: 'MachineId' };

/** One session of a runner with an agent. */
export type RunnerSessionId = string & { readonly __kind?: 'RunnerSessionId' };

/** One boot of a system, as its kernel names it. */
export type BootId = string & { readonly __kind?: 'BootId' };

/** The id that a caller gives a request, so that its repetition is known. */
export type RequestId = string & { readonly __kind?: 'RequestId' };

/** A pool for ever: a pool that is created again under the same name has another. */
export type PoolUid = string & { readonly __brand: 'PoolUid' };

/** For the uid in a record of the pool or of its ledger; '' is of none. */
export function asPoolUid(text: string): PoolUid {
  return text as PoolUid;
}

/** A workflow for ever: a workflow that is created again under the same name has another. */
export type WorkflowUid = string & { readonly __brand: 'WorkflowUid' };

/** For the uid in a record of the workflow or of its run; '' is of none. */
export function asWorkflowUid(text: string): WorkflowUid {
  return text as WorkflowUid;
}

/** One session of an agent with the control plane. */
export type AgentSessionId = string & { readonly __brand: 'AgentSessionId' };

/** For the id that the control plane has made for a session; '' is of none. */
export function asAgentSessionId(text: string): AgentSessionId {
  return text as AgentSessionId;
}

/** A store for ever: a store that was restored or imported is another one. */
export type Incarnation = string & { readonly __brand: 'Incarnation' };

/** For a text that a record or a file holds; '' is of none. Stores brand their own. */
export function asIncarnation(text: string): Incarnation {
  return text as Incarnation;
}

/** An event sink for ever: a sink that is created again under the same name has another. */
export type SinkUid = string & { readonly __brand: 'SinkUid' };

/** For the uid in a record of the sink; '' is of none. */
export function asSinkUid(text: string): SinkUid {
  return text as SinkUid;
}

/** One process of the control plane, as records name it. */
export type ReplicaId = string & { readonly __brand: 'ReplicaId' };

/** Throws a RangeError for '', which stands for no replica in records. */
export function asReplicaId(text: string): ReplicaId {
  if (text === '') throw new RangeError('"" is no id of a replica');
  return text as ReplicaId;
}

/** Whether a person may choose this text as an id. Its characters fit names, keys and labels. */
export function isChosenId(text: string): boolean {
  return /^[a-z]([a-z0-9-]{0,61}[a-z0-9])?$/.test(text);
}

/** The name of a pool without its collection: "web". */
export type PoolId = string & { readonly __brand: 'PoolId' };

/** Throws a RangeError for a text that no pool can have. */
export function asPoolId(text: string): PoolId {
  return chosen(text) as PoolId;
}

/** The name of a batch of workflows without its collection: "set-clocks". */
export type BatchId = string & { readonly __brand: 'BatchId' };

/** Throws a RangeError for a text that no batch can have. */
export function asBatchId(text: string): BatchId {
  return chosen(text) as BatchId;
}

/** The name of a template without its collection: "set-clock". */
export type TemplateId = string & { readonly __brand: 'TemplateId' };

/** Throws a RangeError for a text that no template can have. */
export function asTemplateId(text: string): TemplateId {
  return chosen(text) as TemplateId;
}

/** The name of a token without its collection: "ci". */
export type TokenId = string & { readonly __brand: 'TokenId' };

/** Throws a RangeError for a text that no token can have. */
export function asTokenId(text: string): TokenId {
  return chosen(text) as TokenId;
}

/** The name of a credential without its collection: "bmc-admin". */
export type CredentialId = string & { readonly __brand: 'CredentialId' };

/** Throws a RangeError for a text that no credential can have. */
export function asCredentialId(text: string): CredentialId {
  return chosen(text) as CredentialId;
}

/** "<host uid>/<run>": one image on one host. */
export type DeploymentId = string & { readonly __brand: 'DeploymentId' };

export function deploymentIdOf(hostUid: HostUid, run: RunNumber): DeploymentId {
  return `${hostUid}/${run}` as DeploymentId;
}

/** No deployment, in messages and records. */
export const noDeployment = '' as DeploymentId;

/** Counts the runs of one host from 1; 0: none. */
export type RunNumber = bigint & { readonly __brand: 'RunNumber' };

/** Throws a RangeError for a negative number. */
export function asRunNumber(count: number | bigint): RunNumber {
  return notNegative(BigInt(count)) as RunNumber;
}

/** No run, in messages and records. */
export const noRun: RunNumber = asRunNumber(0);

/** Counts the runs of one workflow of a host from 1; 0: none. */
export type WorkflowRunNumber = bigint & { readonly __brand: 'WorkflowRunNumber' };

/** Throws a RangeError for a negative number. */
export function asWorkflowRunNumber(count: number | bigint): WorkflowRunNumber {
  return notNegative(BigInt(count)) as WorkflowRunNumber;
}

/** A position in the history of one store. */
export type Revision = bigint & { readonly __brand: 'Revision' };

/** Throws a RangeError for a negative number. */
export function asRevision(count: number | bigint): Revision {
  return notNegative(BigInt(count)) as Revision;
}

/** The revision of an empty history, or of one without a loss. */
export const noRevision: Revision = asRevision(0);

function chosen(text: string): string {
  if (!isChosenId(text)) throw new RangeError(`${JSON.stringify(text)} is no id`);
  return text;
}

function notNegative(count: bigint): bigint {
  if (count < 0n) throw new RangeError(`${count} is negative; it counts from 0`);
  return count;
}
