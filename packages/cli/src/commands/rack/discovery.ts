/** The flags of `rack update` about unknown machines. */
import { create, fromJson, type JsonValue } from '@bufbuild/protobuf';
import {
  type AcceptanceRule,
  AcceptanceRuleSchema,
  type DiscoveryPolicy,
  DiscoveryPolicySchema,
} from '@rackwright/messages';
import { errorText } from '@rackwright/platform';
import { isSeq, LineCounter, parseDocument } from 'yaml';
import type { CommandIo } from '../../command-io.ts';
import { UsageError } from '../../failure.ts';
import { parseWhole } from '../../flags.ts';

/** Flags of the policy. */
export const discoveryFlags = {
  discovery: {
    kind: 'enum',
    values: ['on', 'off'],
    optional: true,
    brief: 'Whether machines that nobody knows are booted for their inventory, and listed',
  },
  discoveryMachines: {
    kind: 'parsed',
    parse: parseWhole,
    optional: true,
    brief: 'Maximum number of such machines that are listed',
    placeholder: 'number',
  },
  bmcNetwork: {
    kind: 'parsed',
    parse: String,
    variadic: true,
    optional: true,
    brief:
      'Network of BMCs, as 10.0.8.0/24; give all of them, or "none". Credentials go to addresses ' +
      'that machines say of themselves only where they lie in one',
    placeholder: 'network',
  },
  discoveryRules: {
    kind: 'parsed',
    parse: String,
    optional: true,
    brief: 'YAML file with the list of rules that accept them; an empty list for none',
    placeholder: 'file',
  },
} as const;

export interface DiscoveryFlags {
  readonly discovery?: 'on' | 'off';
  readonly discoveryMachines?: number;
  readonly discoveryRules?: string;
  readonly bmcNetwork?: readonly string[];
}

const rulesBytesMax = 256 * 1024;

/**
 * The policy that the flags describe, and the paths of the fields that they set. Throws
 * `UsageError`.
 */
export async function discoveryFrom(
  io: CommandIo,
  { discovery, discoveryMachines, discoveryRules, bmcNetwork }: DiscoveryFlags,
): Promise<{ policy: DiscoveryPolicy; paths: string[] }> {
  const policy = create(DiscoveryPolicySchema);
  const paths: string[] = [];
  if (discovery !== undefined) {
    policy.enabled = discovery === 'on';
    paths.push('spec.discovery.enabled');
  }
  if (discoveryMachines !== undefined) {
    policy.machinesMax = discoveryMachines;
    paths.push('spec.discovery.machines_max');
  }
  if (bmcNetwork !== undefined) {
    policy.bmcNetworks = bmcNetwork.join() === 'none' ? [] : [...bmcNetwork];
    paths.push('spec.discovery.bmc_networks');
  }
  if (discoveryRules !== undefined) {
    policy.rules = await readRules(io, discoveryRules);
    paths.push('spec.discovery.rules');
  }
  return { policy, paths };
}

async function readRules(io: CommandIo, file: string): Promise<AcceptanceRule[]> {
  const bytes = await io.readFile(file);
  if (bytes === undefined) throw new UsageError(`${file} does not exist`);
  if (bytes.length > rulesBytesMax) {
    throw new UsageError(`${file} has ${bytes.length} bytes; at most ${rulesBytesMax} are read`);
  }
  const lines = new LineCounter();
  const text = new TextDecoder().decode(bytes);
  const document = parseDocument(text, { lineCounter: lines, prettyErrors: false });
  const [error] = document.errors;
  if (error !== undefined) {
    throw new UsageError(`${file}:${lines.linePos(error.pos[0]).line}: ${error.message}`);
  }
  const { contents } = document;
  if (contents === null) return [];
  if (!isSeq(contents)) throw new UsageError(`${file}:1: must be a list of rules`);
  const rules = contents.toJSON() as JsonValue[];
  return rules.map((rule, index) => {
    const item = contents.items[index] as { range?: readonly number[] } | undefined;
    try {
      return fromJson(AcceptanceRuleSchema, rule);
    } catch (cause) {
      const text = errorText(cause);
      throw new UsageError(`${file}:${lines.linePos(item?.range?.[0] ?? 0).line}: ${text}`);
    }
  });
}

/** The policy in a line. */
export function discoveryText(policy: DiscoveryPolicy | undefined, listed: number): string {
  if (policy?.enabled !== true) return listed === 0 ? 'off' : `off, ${listed} listed`;
  const { machinesMax = 256, rules, bmcNetworks } = policy;
  const names = rules.map(({ name }) => name).join(' ');
  const networks = bmcNetworks.join(' ') || 'none';
  return `on, ${listed} of ${machinesMax} listed; rules: ${names || 'none'}; BMCs: ${networks}`;
}
