/**
 * Which requests a host accepts, and when. A missing cell does not compile; a refusal is a cell
 * with its text (DESIGN §4).
 */
import { HostState, RunKind } from '@rackwright/messages';
import type { KnownRunKind, State } from '../pass/transitions.ts';
import type { RequestKind } from '../pass/types.ts';

/** Accepted, or refused with this text. */
export type Cell = 'accept' | { readonly refuse: string };
const accept: Cell = 'accept';
const refuse = (text: string): Cell => ({ refuse: text });

const gone = refuse('the host has been removed; make it known again under its name');
const verifyFirst = refuse(
  'the host is new: it must be verified before anything boots on it; ask for a verify first',
);
const inUse = refuse('the host runs an image; release it first');
const foreign = refuse(
  'the host is external, in someone else’s care: it is never booted, written or wiped; ' +
    'adopt it as provisioned and release it to take it over',
);
const unproved = refuse(
  'its BMC has not been proved yet: no power command is sent to it; ask for a verify first',
);
const keepClean = refuse(
  'an available host stays off, for powering it on from its disk would make it dirty; ' +
    'set its goal to manageable first',
);
const noPower = refuse('no power command while a run holds the host; wait for its end or abort it');
const onlyAvailable = refuse('only an available host is provisioned; clean it first');
const onlyProvisioned = refuse(
  'no image of ours runs on the host; provision it first, or adopt it as provisioned',
);
const nobodyAsked = refuse(
  'no run of the host waits for a person; ask for the work itself: verify, inspect, clean or retry',
);

function everywhere(cell: Cell): { readonly [S in State]: Cell } {
  return {
    [HostState.NEW]: cell,
    [HostState.MANAGEABLE]: cell,
    [HostState.AVAILABLE]: cell,
    [HostState.PROVISIONED]: cell,
    [HostState.EXTERNAL]: cell,
    [HostState.GONE]: gone,
  };
}

/** Request × state, for a host without a run. */
export const requests: { readonly [R in RequestKind]: { readonly [S in State]: Cell } } = {
  verify: everywhere(accept),
  inspect: {
    ...everywhere(accept),
    [HostState.NEW]: verifyFirst,
    [HostState.PROVISIONED]: inUse,
    [HostState.EXTERNAL]: foreign,
  },
  clean: {
    ...everywhere(accept),
    [HostState.NEW]: verifyFirst,
    [HostState.PROVISIONED]: inUse,
    [HostState.EXTERNAL]: foreign,
  },
  service: {
    ...everywhere(accept),
    [HostState.NEW]: verifyFirst,
    [HostState.EXTERNAL]: foreign,
  },
  workflow: {
    ...everywhere(accept),
    [HostState.NEW]: refuse(
      'the host is new: no workflow runs before its BMC is proved; ask for a verify first',
    ),
    [HostState.EXTERNAL]: refuse(
      'the host is external, in someone else’s care: no workflow runs on it; ' +
        'adopt it as provisioned to run them',
    ),
  },
  provision: {
    ...everywhere(onlyAvailable),
    [HostState.AVAILABLE]: accept,
    [HostState.PROVISIONED]: refuse('the host runs an image already; reimage it, or release it'),
    [HostState.EXTERNAL]: foreign,
  },
  reimage: { ...everywhere(onlyProvisioned), [HostState.PROVISIONED]: accept },
  release: { ...everywhere(onlyProvisioned), [HostState.PROVISIONED]: accept },
  rescue: {
    ...everywhere(accept),
    [HostState.NEW]: verifyFirst,
    [HostState.AVAILABLE]: keepClean,
    [HostState.EXTERNAL]: foreign,
  },
  adopt: {
    ...everywhere(accept),
    [HostState.AVAILABLE]: refuse(
      'an available host has been erased: nothing runs there; set its goal to manageable first',
    ),
    [HostState.PROVISIONED]: refuse('the host is provisioned already; release it first'),
  },
  powerOn: { ...everywhere(accept), [HostState.NEW]: unproved, [HostState.AVAILABLE]: keepClean },
  powerOff: { ...everywhere(accept), [HostState.NEW]: unproved },
  powerReset: {
    ...everywhere(accept),
    [HostState.NEW]: unproved,
    [HostState.AVAILABLE]: keepClean,
  },
  abort: everywhere(
    refuse('no run holds the host; there is nothing to abort, ask for what you want'),
  ),
  skipWait: everywhere(
    refuse(
      'no run of the host waits for its system to shut down; to switch it off, ask for power off',
    ),
  ),
  confirmPower: everywhere(
    refuse(
      'no run of the host waits to hear that it was switched by hand; ask for power on or off',
    ),
  ),
  resume: { ...everywhere(nobodyAsked), [HostState.MANAGEABLE]: accept },
  skip: everywhere(nobodyAsked),
  retry: everywhere(accept),
  claim: everywhere(accept),
  unclaim: everywhere(accept),
  hold: everywhere(accept),
  releaseHold: everywhere(accept),
  delete: everywhere(accept),
  cancelDelete: everywhere(accept),
  note: everywhere(accept),
  update: everywhere(accept),
};

function whileAny(cell: Cell): { readonly [K in KnownRunKind]: Cell } {
  return {
    [RunKind.VERIFY]: cell,
    [RunKind.INSPECT]: cell,
    [RunKind.CLEAN]: cell,
    [RunKind.PROVISION]: cell,
    [RunKind.REIMAGE]: cell,
    [RunKind.SERVICE]: cell,
    [RunKind.WORKFLOW]: cell,
    [RunKind.RELEASE]: cell,
    [RunKind.POWER]: cell,
    [RunKind.RESCUE]: cell,
    [RunKind.ADOPT]: cell,
    [RunKind.DELETE]: cell,
  };
}

const busy = refuse('wait for its end or abort it');

/** Work that prevents the deletion of a host, as long as some party can do it (DESIGN §4). */
const whileBusy = {
  [RunKind.CLEAN]: busy,
  [RunKind.PROVISION]: busy,
  [RunKind.REIMAGE]: busy,
  [RunKind.SERVICE]: busy,
  [RunKind.WORKFLOW]: busy,
} as const;

const removing = refuse(
  'the host is being removed; make it known again afterwards, under this name or another',
);

const noStartWhileAny = { ...whileAny(busy), [RunKind.DELETE]: removing };

const noPowerWhileAny = {
  ...whileAny(noPower),
  [RunKind.VERIFY]: accept,
  [RunKind.DELETE]: removing,
};

const whereAPersonMayStep = {
  ...whileAny(
    refuse(
      'only a clean, a service or a workflow waits for a person; abort it, or wait for its end',
    ),
  ),
  [RunKind.CLEAN]: accept,
  [RunKind.SERVICE]: accept,
  [RunKind.WORKFLOW]: accept,
  [RunKind.DELETE]: removing,
};

/** Request × kind of the run that holds the host. */
export const requestsDuringRun: {
  readonly [R in RequestKind]: { readonly [K in KnownRunKind]: Cell };
} = {
  verify: noStartWhileAny,
  inspect: noStartWhileAny,
  clean: noStartWhileAny,
  service: noStartWhileAny,
  workflow: noStartWhileAny,
  provision: noStartWhileAny,
  reimage: noStartWhileAny,
  release: noStartWhileAny,
  rescue: noStartWhileAny,
  // An adoption states what the host is. So it comes before anything of the goal that boots the
  // host.
  adopt: { ...noStartWhileAny, [RunKind.VERIFY]: accept },
  powerOn: noPowerWhileAny,
  powerOff: noPowerWhileAny,
  powerReset: noPowerWhileAny,
  skipWait: whileAny(accept),
  confirmPower: whileAny(accept),
  abort: {
    ...whileAny(accept),
    [RunKind.DELETE]: refuse(
      'a removal that has begun cannot be stopped; see why it waits (explain)',
    ),
  },
  resume: whereAPersonMayStep,
  skip: whereAPersonMayStep,
  retry: whileAny(accept),
  claim: { ...whileAny(accept), [RunKind.DELETE]: removing },
  unclaim: whileAny(accept),
  hold: whileAny(accept),
  releaseHold: whileAny(accept),
  delete: { ...whileAny(accept), ...whileBusy },
  cancelDelete: {
    ...whileAny(accept),
    [RunKind.DELETE]: refuse(
      'the removal has begun and cannot be taken back; make the host known again afterwards',
    ),
  },
  note: whileAny(accept),
  update: { ...whileAny(accept), [RunKind.DELETE]: removing },
};
