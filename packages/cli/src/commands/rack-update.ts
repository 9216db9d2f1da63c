/** rackwright rack update */
import type { MessageInitShape } from '@bufbuild/protobuf';
import { createClient, type Rack, RackService, type RackSpecSchema } from '@rackwright/api';
import { buildCommand } from '@stricli/core';
import { UsageError } from '../failure.ts';
import {
  connectionFlags,
  idArgument,
  outputFlag,
  parseLabels,
  parseWhole,
  resourceName,
  type SharedFlags,
} from '../flags.ts';
import { enumValue } from '../output/enum-name.ts';
import { openConnection } from '../settings.ts';
import type { CliContext, World } from '../world.ts';
import { withClient } from './calls.ts';

interface RackFlags extends SharedFlags {
  readonly displayName?: string;
  readonly powerMismatch?: 'report' | 'enforce';
  readonly powerSyncSeconds?: number;
  readonly label?: readonly string[];
}

/** `show` prints the rack as `rack get` does. */
export function updateRackCommand(show: (world: World, flags: SharedFlags, rack: Rack) => void) {
  return buildCommand({
    docs: { brief: 'Change what a rack is called, and how its hosts’ power is watched' },
    parameters: {
      flags: {
        ...connectionFlags,
        ...outputFlag,
        displayName: { kind: 'parsed', parse: String, optional: true, brief: 'Name for people' },
        powerMismatch: {
          kind: 'enum',
          values: ['report', 'enforce'],
          optional: true,
          brief: 'What follows when power is not what a host’s spec says: a fault, or a switch',
        },
        powerSyncSeconds: {
          kind: 'parsed',
          parse: parseWhole,
          optional: true,
          brief: 'Seconds between two looks at each host’s power: 10–3600; 0 switches them off',
          placeholder: 'seconds',
        },
        label: {
          kind: 'parsed',
          parse: String,
          variadic: true,
          optional: true,
          brief: 'NAME=VALUE; may be repeated; replaces all',
          placeholder: 'name=value',
        },
      },
      positional: idArgument('rack', 'Id of the rack'),
      aliases: { o: 'output' },
    },
    async func(this: CliContext, flags: RackFlags, id: string) {
      const { spec, paths } = changesOf(flags);
      if (paths.length === 0) throw new UsageError('nothing is to be changed; give a flag');
      const labels = parseLabels(flags.label ?? []);
      const rack = { name: resourceName('racks', id), spec, labels };
      const client = ({ channel, defaults }: Awaited<ReturnType<typeof openConnection>>) =>
        createClient(RackService, channel, defaults);
      const updated = await withClient(openConnection(this.world, flags), client, (racks) =>
        racks.updateRack({ rack, updateMask: { paths } }),
      );
      show(this.world, flags, updated);
    },
  });
}

type SpecInit = Exclude<MessageInitShape<typeof RackSpecSchema>, { $typeName: string }>;

/** What the flags set, and nothing else. */
function changesOf(flags: RackFlags): { spec: SpecInit; paths: string[] } {
  const { displayName, powerMismatch, powerSyncSeconds, label } = flags;
  const policy = powerMismatch && enumValue('PowerMismatchPolicy', powerMismatch);
  return {
    // The names of an enum are numbers that the schema knows.
    spec: {
      ...(displayName === undefined ? {} : { displayName }),
      ...(policy === undefined ? {} : { powerMismatch: policy }),
      ...(powerSyncSeconds === undefined ? {} : { powerSyncSeconds }),
    } as SpecInit,
    paths: [
      ...(displayName === undefined ? [] : ['spec.display_name']),
      ...(policy === undefined ? [] : ['spec.power_mismatch']),
      ...(powerSyncSeconds === undefined ? [] : ['spec.power_sync_seconds']),
      ...(label === undefined ? [] : ['labels']),
    ],
  };
}
