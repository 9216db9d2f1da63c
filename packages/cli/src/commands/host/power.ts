/** rackwright host power … */
import { PowerAction, ShutdownMode } from '@rackwright/messages';
import { buildCommand, buildRouteMap } from '@stricli/core';
import { UsageError } from '../../failure.ts';
import { parseWhole, resourceName, type SharedFlags } from '../../flags.ts';
import type { CliContext } from '../../world.ts';
import {
  hostAliases as aliases,
  hostArgument,
  hostFlags,
  requestFlag,
  showHost,
  withHosts,
} from './client.ts';

const oldDiskFlag = {
  bootOldDisk: {
    kind: 'parsed',
    parse: String,
    default: '',
    brief: 'Why a host that may hold old data is booted from its disk',
    placeholder: 'reason',
  },
} as const;

const shutdownFlags = {
  graceful: {
    kind: 'boolean',
    optional: true,
    withNegated: false,
    brief: 'Ask the system to shut down first',
  },
  force: {
    kind: 'boolean',
    optional: true,
    withNegated: false,
    brief: 'Take the power at once',
  },
  shutdownTimeout: {
    kind: 'parsed',
    parse: parseWhole,
    optional: true,
    brief: 'Seconds that the system may take before it is forced off',
    placeholder: 'seconds',
  },
} as const;

interface AskFlags extends SharedFlags {
  readonly requestId: string;
}

interface BootFlags {
  readonly bootOldDisk: string;
}

interface ShutdownFlags {
  readonly graceful?: boolean;
  readonly force?: boolean;
  readonly shutdownTimeout?: number;
}

/** What the flags ask for; nothing of what they leave to the host's spec. Throws `UsageError`. */
function shutdownOf({ graceful = false, force = false, shutdownTimeout }: ShutdownFlags) {
  if (graceful && force) throw new UsageError('--graceful and --force: give one of them');
  if (force && shutdownTimeout !== undefined) {
    throw new UsageError('--force waits for nobody; leave --shutdown-timeout out');
  }
  if (!graceful && !force && shutdownTimeout === undefined) return {};
  return {
    shutdown: {
      ...(graceful ? { mode: ShutdownMode.GRACEFUL } : {}),
      ...(force ? { mode: ShutdownMode.FORCE } : {}),
      ...(shutdownTimeout === undefined ? {} : { timeoutSeconds: shutdownTimeout }),
    },
  };
}

const ownFlags = { ...hostFlags, ...requestFlag };

async function setPower(
  { world }: CliContext,
  flags: AskFlags & Partial<BootFlags> & ShutdownFlags,
  id: string,
  action: PowerAction,
): Promise<void> {
  const name = resourceName('hosts', id);
  const { bootOldDisk: bootOldDiskReason = '', requestId } = flags;
  const request = { name, action, bootOldDiskReason, requestId, ...shutdownOf(flags) };
  showHost(world, flags, await withHosts(world, flags, (hosts) => hosts.setHostPower(request)));
}

const powerOn = buildCommand({
  docs: { brief: 'Switch a host on, from its disk' },
  parameters: { flags: { ...ownFlags, ...oldDiskFlag }, positional: hostArgument, aliases },
  func(this: CliContext, flags: AskFlags & BootFlags, id: string) {
    return setPower(this, flags, id, PowerAction.ON);
  },
});

const powerOff = buildCommand({
  docs: { brief: 'Switch a host off' },
  parameters: { flags: { ...ownFlags, ...shutdownFlags }, positional: hostArgument, aliases },
  func(this: CliContext, flags: AskFlags & ShutdownFlags, id: string) {
    return setPower(this, flags, id, PowerAction.OFF);
  },
});

const powerReset = buildCommand({
  docs: { brief: 'Switch a host off and on, from its disk' },
  parameters: {
    flags: { ...ownFlags, ...oldDiskFlag, ...shutdownFlags },
    positional: hostArgument,
    aliases,
  },
  func(this: CliContext, flags: AskFlags & BootFlags & ShutdownFlags, id: string) {
    return setPower(this, flags, id, PowerAction.RESET);
  },
});

const skipWait = buildCommand({
  docs: { brief: 'Wait no longer for the system to shut down: force it off' },
  parameters: { flags: ownFlags, positional: hostArgument, aliases },
  func(this: CliContext, flags: AskFlags, id: string) {
    return setPower(this, flags, id, PowerAction.SKIP_WAIT);
  },
});

export const powerRoutes = buildRouteMap({
  routes: { on: powerOn, off: powerOff, reset: powerReset, 'skip-wait': skipWait },
  docs: { brief: 'Power of a host; refused while a run holds it, but skip-wait' },
});
