/** rackwright host delete, cancel-delete, release-hold */
import { DeletionMode, HostState } from '@rackwright/messages';
import { stateText } from '../../output/host.ts';
import { isForPrograms, printLines } from '../../output/show.ts';
import { showHost } from './client.ts';
import { hostVerb } from './verb.ts';

export const deleteHost = hostVerb<{ readonly force: boolean }>({
  word: 'delete',
  docs: {
    brief: 'Ask for a host to be deleted; refused while it is busy',
    fullDescription:
      'Ask for a host to be deleted; refused while it is busy, forced or not.\n\n' +
      'A host that runs an image is released and erased, then it is switched off, then the ' +
      'agent forgets it; what fails is tried again until it succeeds. With --force agent and ' +
      'BMC are asked once each, whatever they answer: the record goes, and what may still be ' +
      'is written down (rackwright abandoned list).',
  },
  flags: {
    force: {
      kind: 'boolean',
      default: false,
      brief: 'Remove it whatever agent and BMC say; data and power may be left as they are',
    },
  },
  hasReason: true,
  waitsFor: 'deleted',
  prepare: (_snapshot, { force, wait = false }) => {
    const mode = force ? DeletionMode.FORCE : DeletionMode.NORMAL;
    return {
      loss: { kind: 'delete', force },
      ask: (hosts, call) => hosts.deleteHost({ ...call, mode }),
      show: (io, flags, host) => {
        if (isForPrograms(flags.output)) {
          showHost(io, flags, host);
          return;
        }
        const gone = wait || host.status?.state === HostState.GONE;
        printLines(io, [`${host.name} ${gone ? 'removed' : stateText(host)}`]);
        if (!gone || !force) return;
        io.err.write(`What it may have left: rackwright abandoned get ${host.uid}\n`);
      },
    };
  },
});

export const cancelDelete = hostVerb({
  word: 'cancel-delete',
  docs: { brief: 'Cancel a deletion whose removal has not begun' },
  flags: {},
  hasReason: true,
  prepare: () => ({ ask: (hosts, call) => hosts.cancelHostDeletion(call) }),
});

export const releaseHold = hostVerb<{
  readonly hold: string;
  readonly physicallyDisconnected: boolean;
}>({
  word: 'release-hold',
  docs: { brief: 'Lift a hold once its reason has been seen to' },
  flags: {
    hold: {
      kind: 'parsed',
      parse: String,
      default: '',
      brief: 'The hold’s reason, or fencePending; without, all',
    },
    physicallyDisconnected: {
      kind: 'boolean',
      default: false,
      brief: 'For fencePending: the machine removed by force can reach nothing any more',
    },
  },
  hasReason: true,
  prepare: (_snapshot, { hold, physicallyDisconnected }) => ({
    ask: (hosts, call) => hosts.releaseHold({ ...call, hold, physicallyDisconnected }),
  }),
});
