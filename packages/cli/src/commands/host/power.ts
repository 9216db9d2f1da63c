/** rackwright host power … */
import { PowerAction, ShutdownMode } from '@rackwright/messages';
import { buildRouteMap, type FlagParametersForType } from '@stricli/core';
import type { CliContext } from '../../command-io.ts';
import { UsageError } from '../../failure.ts';
import { parseWhole } from '../../flags.ts';
import { hostVerb } from './verb.ts';

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
    brief: 'Force the host off at once',
  },
  shutdownTimeout: {
    kind: 'parsed',
    parse: parseWhole,
    optional: true,
    brief: 'Seconds that the system may take before it is forced off',
    placeholder: 'seconds',
  },
} as const;

interface BootFlags {
  readonly bootOldDisk: string;
}

interface ShutdownFlags {
  readonly graceful?: boolean;
  readonly force?: boolean;
  readonly shutdownTimeout?: number;
}

/**
 * The shutdown that the flags set; fields without a flag follow the host's spec. Throws
 * `UsageError`.
 */
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

function powerVerb<Own extends Partial<BootFlags> & ShutdownFlags>(
  word: string,
  brief: string,
  flags: FlagParametersForType<Own, CliContext>,
  action: PowerAction,
) {
  return hostVerb<Own>({
    word: `power ${word}`,
    docs: { brief },
    flags,
    hasReason: false,
    waitsFor: 'run',
    prepare: (_snapshot, given) => {
      const { bootOldDisk: bootOldDiskReason = '' } = given;
      const change = { action, bootOldDiskReason, ...shutdownOf(given) };
      return {
        ask: (hosts, { name, requestId }) => hosts.setHostPower({ name, requestId, ...change }),
      };
    },
  });
}

const powerOn = powerVerb<BootFlags>(
  'on',
  'Switch a host on, from its disk',
  oldDiskFlag,
  PowerAction.ON,
);
const powerOff = powerVerb<ShutdownFlags>(
  'off',
  'Switch a host off',
  shutdownFlags,
  PowerAction.OFF,
);
const powerReset = powerVerb<BootFlags & ShutdownFlags>(
  'reset',
  'Switch a host off and on, from its disk',
  { ...oldDiskFlag, ...shutdownFlags },
  PowerAction.RESET,
);
const skipWait = powerVerb<object>(
  'skip-wait',
  'Wait no longer for the system to shut down: force it off',
  {},
  PowerAction.SKIP_WAIT,
);
const confirmOn = powerVerb<object>(
  'confirm-on',
  'Confirm that you have switched on a host without a BMC',
  {},
  PowerAction.CONFIRM_ON,
);
const confirmOff = powerVerb<object>(
  'confirm-off',
  'Confirm that you have switched off a host without a BMC',
  {},
  PowerAction.CONFIRM_OFF,
);

export const powerRoutes = buildRouteMap({
  routes: {
    on: powerOn,
    off: powerOff,
    reset: powerReset,
    'skip-wait': skipWait,
    'confirm-on': confirmOn,
    'confirm-off': confirmOff,
  },
  docs: { brief: 'Power of a host; on, off and reset are refused while a run holds it' },
});
