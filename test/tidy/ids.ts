/**
 * Ids have a kind (`packages/messages/src/ids.ts`), in generated messages and in our own code.
 *
 * I1 `typeIds` gives the fields of generated messages their kinds; `npm run gen` and the test of
 *    freshness both use it.
 * I2 `findPlainIds` finds what is called as such a field and is declared as any text or number,
 *    and each function with such a name, or with `Of` behind it, that returns one.
 */
import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { type Finding, isTestCode, type SourceFile } from './sources.ts';

interface Kind {
  readonly names: RegExp;
  readonly base: 'string' | 'bigint';
  readonly kind: string;
  /** Where it names nothing else in our own code; unset: everywhere. */
  readonly within?: RegExp;
}

/** Kinds by names, whatever the message. */
const kinds: readonly Kind[] = [
  { names: /^(hostUid|\w+HostUid)s?$/, base: 'string', kind: 'HostUid' },
  { names: /^(operationId|\w+OperationId|cancelId)s?$/, base: 'string', kind: 'OperationId' },
  { names: /^(hostId|\w+HostId)s?$/, base: 'string', kind: 'HostId' },
  { names: /^hostNames?$/, base: 'string', kind: 'HostName' },
  {
    ...{ names: /^hosts?$/, base: 'string', kind: 'HostName' },
    within: /^controlplane\/src\/(discovery|pool|workflow)\//,
  },
  { names: /^(rackId|\w+RackId)s?$/, base: 'string', kind: 'RackId' },
  {
    ...{ names: /^racks?$/, base: 'string', kind: 'RackName' },
    // Advice puts ids into commands.
    within: /^controlplane\/src\/(?!host\/explain|metrics)/,
  },
  {
    ...{ names: /^credentials?$/, base: 'string', kind: 'CredentialName' },
    within: /^(controlplane|packages\/template)\/src\//,
  },
  { names: /^deploymentId$/, base: 'string', kind: 'DeploymentId' },
  { names: /^workflowUid$/, base: 'string', kind: 'WorkflowUid' },
  { names: /^(sessionId|replacesSessionId)$/, base: 'string', kind: 'AgentSessionId' },
  { names: /^(incarnation|seenIncarnation)$/, base: 'string', kind: 'Incarnation' },
  { names: /^(run|runNumber|hostRun)$/, base: 'bigint', kind: 'RunNumber' },
  { names: /^(revision|\w+Revision|lostRevisions\w*)$/, base: 'bigint', kind: 'Revision' },
];

/** Kinds in our own code alone: a request has a text that is not checked yet. */
const kindsOfOurs: readonly Kind[] = [
  ['poolId', 'PoolId'],
  ['templateId', 'TemplateId'],
  ['tokenId', 'TokenId'],
  ['credentialId', 'CredentialId'],
  ['batchId', 'BatchId'],
  ['poolUid', 'PoolUid'],
  ['sinkUid', 'SinkUid'],
  ['sinkId', 'SinkId'],
  ['eventId', 'EventId'],
  ['machineId', 'MachineId'],
  ['targetId', 'OperationId'],
  ['replicaId', 'ReplicaId'],
  ['runnerSession', 'RunnerSessionId'],
  ['bootId', 'BootId'],
  ['(requestId|\\w+RequestId)', 'RequestId'],
].map(([name, kind = '']) => {
  const within = /^(agent|controlplane|packages\/runner)\//;
  return { names: new RegExp(`^${name}s?$`), base: 'string', kind, within };
});

/** Kinds of fields whose names say nothing of them, or another one. */
const kindsOfFields: ReadonlyMap<string, string> = new Map([
  ['rackwright.v1.Host.name', 'HostName'],
  ['rackwright.v1.Host.uid', 'HostUid'],
  ['rackwright.v1.Rack.name', 'RackName'],
  ['rackwright.v1.Run.number', 'RunNumber'],
  ['rackwright.v1.RunStarted.number', 'RunNumber'],
  ['rackwright.v1.RunEnded.number', 'RunNumber'],
  ['rackwright.v1.Workflow.uid', 'WorkflowUid'],
  ['rackwright.v1.WorkflowRun.number', 'WorkflowRunNumber'],
  ['rackwright.agent.v1.Operation.id', 'OperationId'],
  ['rackwright.agent.v1.Deployment.id', 'DeploymentId'],
  ['rackwright.agent.v1.Deployment.hostName', 'HostId'],
]);

function kindOf(name: string, base: string, among = kinds): Kind | undefined {
  return among.find((each) => each.base === base && each.names.test(name));
}

/** Gives the ids in a folder of generated code their kinds (I1). */
export function typeIds(folder: string): void {
  const names = readdirSync(folder, { recursive: true, encoding: 'utf8' });
  for (const name of names.filter((each) => /^rackwright\/.*_pb\.ts$/.test(each))) {
    const path = join(folder, name);
    const depth = name.split('/').length;
    writeFileSync(path, typedCode(readFileSync(path, 'utf8'), depth));
  }
}

/** One generated file, `depth` names below the folder of the kinds. */
export function typedCode(text: string, depth: number): string {
  const used = new Set<string>();
  let message = '';
  const lines = text.split('\n').map((line) => {
    message = /^export type \w+ = Message<"([\w.]+)">/.exec(line)?.[1] ?? message;
    return line.replace(
      /^  (\w+)(\??): (string|bigint)(?=(\[\])?;$)/,
      (field, name, optional, base) => {
        const kind = kindsOfFields.get(`${message}.${name}`) ?? kindOf(name, base)?.kind;
        if (kind === undefined) return field;
        used.add(kind);
        return `  ${name}${optional}: ${kind}`;
      },
    );
  });
  if (used.size === 0) return text;
  const from = `${'../'.repeat(depth)}ids.ts`;
  lines.splice(3, 0, `import type { ${[...used].sort().join(', ')} } from "${from}";`);
  return lines.join('\n');
}

const ownKinds = [...kinds, ...kindsOfOurs];

/** Packages that know no messages, and none of their kinds. */
const below =
  /^(packages\/(bmc|bytes|dhcp|disk-image|metrics|oci|platform|sim|store|tftp|trace)|test\/tidy)\//;

function isMeant({ within }: Kind, path: string): boolean {
  return within === undefined || (within.test(path) && !isTestCode(path));
}

/** A parameter or field, and its type. */
const declared = /\b(?<name>\w+)\??: (?:readonly )?(?<base>string|bigint)\b/g;

/** A function or method, and what it returns; its parameters may be on lines of their own. */
const returning =
  /\b(?<name>\w+)\((?:[^()]|\([^()]*\))*\): (?:Promise<)?(?:readonly )?(?<base>string|bigint)\b/g;

/** Names of ids that are declared as any text or number, or return one (I2). */
export function findPlainIds({ path, text }: SourceFile): Finding[] {
  if (below.test(path)) return [];
  const found = (pattern: RegExp, verb: string) =>
    [...text.matchAll(pattern)].flatMap(({ index, groups: { name = '', base = '' } = {} }) => {
      const kind = kindOf(name.replace(/Of$/, ''), base, ownKinds);
      if (kind === undefined || !isMeant(kind, path)) return [];
      const line = text.slice(0, index).split('\n').length;
      return [{ path, line, message: `${name} ${verb} any ${base}; it is a ${kind.kind}` }];
    });
  return [...found(declared, 'is'), ...found(returning, 'returns')];
}
