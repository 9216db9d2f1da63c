/**
 * Seeds that once broke a promise, each with what was wrong. What they meet changes as the code
 * does; a test beside the code that was mended holds the mending itself.
 */
import type { WorldOptions } from './world.ts';

export interface Regression extends Omit<WorldOptions, 'traceLines'> {
  readonly was: string;
}

export const regressions: readonly Regression[] = [
  {
    seed: 1_795_170_344_123,
    hosts: 2,
    operators: false,
    workflows: false,
    was: 'two hosts verified while their cables were crossed held each other’s identity for ever',
  },
  {
    seed: 1_795_170_706_038,
    hosts: 2,
    operators: false,
    workflows: false,
    was: 'a cloned agent at another replica went unnoticed, and switched for a run that had ended',
  },
  {
    seed: 1_795_170_146_275,
    hosts: 2,
    operators: false,
    workflows: false,
    was: 'an order to a runner waited for its deadline after the power of its machine was lost',
  },
  {
    seed: 298,
    hosts: 2,
    operators: false,
    workflows: false,
    was: 'numbers of lost runs came again when the loss was accepted before the agent was there',
  },
  {
    seed: 1_795_175_700_497,
    hosts: 2,
    operators: true,
    workflows: false,
    was: 'a refused creation left its host behind, without its addresses, once it had moved',
  },
  {
    seed: 1_795_175_700_943,
    hosts: 2,
    operators: true,
    workflows: false,
    was: 'explain named a command that the run under way refuses',
  },
  {
    seed: 1_795_175_452_147,
    hosts: 2,
    operators: true,
    workflows: false,
    was: 'an agent went on with an order of a lost stretch: its id stood unsent in the slot',
  },
  {
    seed: 1_795_311_083_050,
    hosts: 2,
    operators: false,
    workflows: false,
    was: 'an acceptance that stood in a backup was taken for one of what was lost with it',
  },
  {
    seed: 1_795_311_083_587,
    hosts: 2,
    operators: true,
    workflows: false,
    was: 'an agent did not say that its list of hosts was of a later revision than the store had',
  },
  {
    seed: 1_795_311_084_616,
    hosts: 2,
    operators: false,
    workflows: false,
    was: 'numbers that were passed over at one restoration came again at the next',
  },
  {
    seed: 1_795_311_085_054,
    hosts: 2,
    operators: false,
    workflows: false,
    was: 'an identity whose release a crash had lost was kept from its machine for ever',
  },
  {
    seed: 1_795_311_086_791,
    hosts: 2,
    operators: true,
    workflows: false,
    was: 'a freeze held back an order that the runner had never got, and nobody said so',
  },
  {
    seed: 1_795_311_087_648,
    hosts: 2,
    operators: false,
    workflows: false,
    was: 'an order was sent into a half-open stream of a session that had gone to another replica',
  },
  {
    seed: 1_795_313_426_161,
    hosts: 2,
    operators: true,
    was: 'an order that had never begun kept a host from its removal, until a store was accepted',
  },
  {
    seed: 1_795_313_427_109,
    hosts: 2,
    operators: true,
    was: 'a store that was away after a removal was answered as an error of ours',
  },
  {
    seed: 345,
    hosts: 2,
    operators: true,
    workflows: true,
    was: 'a run whose end was not written down yet stayed open for ever behind the next one',
  },
  {
    seed: 747,
    hosts: 2,
    operators: true,
    workflows: true,
    was: 'to give up its slot in a batch was advised to a host whose run waited for a thaw',
  },
  {
    seed: 1241,
    hosts: 2,
    operators: true,
    was: 'a list of a store that went back was judged by the policy of after',
  },
  {
    seed: 72,
    hosts: 2,
    batches: true,
    discovery: true,
    was: 'an agent whose disk was put back gave a runner’s erasure to the runner of a later boot',
  },
  {
    seed: 107,
    hosts: 2,
    operators: false,
    workflows: false,
    pools: true,
    was: 'a host that ran its new image was held for ill by a power command that had failed before',
  },
  {
    seed: 93,
    hosts: 2,
    discovery: true,
    pools: true,
    was: 'a host whose making was cut short had some of its addresses, and nobody had the others',
  },
  {
    seed: 248,
    hosts: 2,
    was: 'a run that had lost the boot of its erasure erased anew, and was judged for not reading',
  },
  {
    seed: 455,
    hosts: 2,
    was: 'a host was judged for standing still by its record of before the operator moved it',
  },
  {
    seed: 2079,
    hosts: 2,
    pools: true,
    was: 'an order of a restored store was judged by the plan of the lost order with its number',
  },
  {
    seed: 3003,
    hosts: 2,
    was: 'a name that was deleted and taken by another request was held against the first one',
  },
  {
    seed: 95,
    hosts: 2,
    was: 'what to do about a boot that stood still was nothing that the person knew how to do',
  },
  {
    seed: 330,
    hosts: 2,
    was: 'a clean resumed after another boot erased anew, and was judged for not reading',
  },
  {
    seed: 429,
    hosts: 2,
    was: 'a reading that failed was not counted when the answer to its report was lost',
  },
  {
    seed: 79,
    hosts: 2,
    was: 'a system that came back with a lost wipe ran, and its host was judged for its data',
  },
  {
    seed: 2289,
    hosts: 2,
    was: 'a clean was advised that the policy refused, as it failed before it came to that',
  },
  {
    seed: 1622,
    hosts: 2,
    was: 'an image of the lost stretch was read as returned data once a restore was accepted',
  },
  {
    seed: 1142,
    hosts: 2,
    was: 'a report was lost once its certificate stood, and the disk was judged as certified',
  },
  {
    seed: 1234,
    hosts: 2,
    discovery: true,
    was: 'a certificate that no record of a host cited was held against the erasure after it',
  },
  {
    seed: 2925,
    hosts: 2,
    was: 'a program was ordered again and again of the runner of a boot that was gone',
  },
  {
    seed: 80_093,
    hosts: 2,
    was: 'a provision that met another machine asked for one verify after the other, without end',
  },
  {
    seed: 80_739,
    hosts: 2,
    was: 'the judge forgot what began soon after a restore, and took its repetition for disorder',
  },
  {
    seed: 7_510_029,
    hosts: 2,
    discovery: true,
    was: 'the judge wanted a disk read again that had been in use since, before a program ran',
  },
  {
    seed: 7_520_111,
    hosts: 2,
    pools: true,
    was: 'the judge forgot a run that had ended before its pool counted its host as failed',
  },
  {
    seed: 7_520_732,
    hosts: 2,
    discovery: true,
    was: 'an agent that had missed an accepted restore kept its list of hosts and booted none',
  },
  {
    seed: 7_530_115,
    hosts: 2,
    was: 'a lost runner kept its host locked: its BMC refused the password, and nobody was told so',
  },
  {
    seed: 7_530_243,
    hosts: 2,
    was: 'a cancelled batch wrote the abort of its run again and again until the run had ended',
  },
  {
    seed: 7_620_115,
    hosts: 2,
    was: 'an accepted restore had orders sent before the agent had said what it still had of them',
  },
  {
    seed: 7_632_638,
    hosts: 2,
    was: 'the judge took an order that a restore had lost for the older one that stood again',
  },
  {
    seed: 7_632_613,
    hosts: 2,
    discovery: true,
    was: 'an erasure waited for its runner for hours: its machine had booted from another card',
  },
  {
    seed: 7_700_349,
    hosts: 2,
    was: 'a lost runner kept its host locked: its BMC was changed, and the new one was not asked',
  },
  {
    seed: 7_701_623,
    hosts: 2,
    views: true,
    was:
      'explain advised a verify, which is refused for a host that is being deleted; it kept ' +
      'another’s BMC',
  },
  {
    seed: 7_800_237,
    hosts: 2,
    pools: true,
    was: 'the judge held against a restored host what a program of its lost clean wrote later',
  },
  {
    seed: 8_000_407,
    hosts: 2,
    discovery: true,
    was: 'the judge gave no time for the deadline of a step whose machine had booted elsewhere',
  },
  {
    seed: 8_201_198,
    hosts: 2,
    pools: true,
    views: true,
    was: 'an agent whose clock was stepped held its host for an operation that was timed out',
  },
  {
    seed: 8_201_550,
    hosts: 2,
    pools: true,
    was: 'a host at the gate of its pool and one that may be out waited for each other for ever',
  },
  {
    seed: 8_300_286,
    hosts: 2,
    pools: true,
    was: 'the judge held an addendum that a restore had lost against a later revocation',
  },
  {
    seed: 8_410_935,
    hosts: 2,
    pools: true,
    was: 'the judge blamed an agent for not knowing what it had sent before it died',
  },
  {
    seed: 8_900_607,
    hosts: 2,
    discovery: true,
    was: 'no operator accepted a restored store whose hosts were all at their goal',
  },
  {
    seed: 9_600_967,
    hosts: 2,
    was: 'a crash in a forced removal left a living host whose agent was told to forget it',
  },
];
