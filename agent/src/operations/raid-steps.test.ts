import { RerunClass } from '@rackwright/messages';
import { problemIn, valid } from '@rackwright/platform';
import { expect, test } from 'vitest';
import { parseVolumes, raidSteps } from './raid-steps.ts';

test('volumes are a type and drives, with whatever a BMC calls them', () => {
  const drive = (bay: number) => `Disk.Bay.${bay}:Enclosure.Internal.0-1:RAID.Integrated.1-1`;
  const volumes = [
    { raidType: 'RAID1', drives: [drive(0), drive(1)] },
    { raidType: 'RAID0', drives: ['c'] },
  ];
  expect(parseVolumes(`RAID1=${drive(0)}+${drive(1)};RAID0=c`)).toEqual(valid(volumes));
  expect(parseVolumes('none')).toEqual(valid([]));
});

test.each([
  ['', /must be TYPE=DRIVE\+DRIVE/],
  ['RAID1', /"RAID1" is not/],
  ['RAID1=', /is not/],
  ['RAID1=a+', /is not/],
  ['RAID1=a b+c', /is not/],
  ['RAID2=a+b', /one of|is not/],
  ['toString=a', /is not/],
  ['RAID1=a+b;', /"" is not/],
  ['RAID1=a+b;none', /"none" is not/],
  ['RAID1=a', /RAID1 needs 2 drives or more/],
  ['RAID10=a+b+c', /RAID10 needs 4 drives or more/],
  ['RAID1=a+b;RAID0=b', /names drive b twice/],
  [Array.from({ length: 17 }, (_, at) => `RAID0=${at}`).join(';'), /at most 16 volumes/],
])('%j is refused with its reason', (listed, reason) => {
  expect(problemIn(parseVolumes(listed))).toMatch(reason);
});

test('the step says that it destroys, boots again, and is never ordered again by itself', () => {
  const [step] = raidSteps;
  expect(step?.description).toMatchObject({
    ...{ name: 'raid.apply', destructive: true, rebootAfter: true, priority: 0 },
    rerunClass: RerunClass.CHECK_FIRST,
  });
  expect(step?.canCheck).toBe(true);
  expect(step?.problem?.({ controller: 'RAID.1', volumes: 'none' })).toBeUndefined();
  expect(step?.problem?.({ controller: 'a b', volumes: 'none' })).toMatch(/^controller must be/);
  expect(step?.problem?.({ controller: 'RAID.1', volumes: 'x' })).toMatch(/^volumes must be/);
});
