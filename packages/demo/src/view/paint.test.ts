import { describe, expect, test } from 'vitest';
import { columnsMin, lineOf, type Picture, paint } from './paint.ts';
import type { HostProgress } from './progress.ts';

const cleaning: HostProgress = {
  name: 'h1',
  rack: 'r1',
  fraction: 0.5,
  state: 'cleaning',
  detail: '4/6 deploy.erase_devices 37 %',
  mood: 'busy',
};
const broken: HostProgress = {
  name: 'yes-but-nothing',
  rack: 'r2',
  fraction: 0.1,
  state: 'cleaning, waiting for agent',
  detail: 'the BMC accepted the order\nand nothing came of it, which is said at length',
  mood: 'troubled',
};
const picture: Picture = {
  racks: [
    { name: 'r1', isConnected: true },
    { name: 'r2', isConnected: false },
  ],
  hosts: [cleaning, broken],
  elapsedMs: 83_400,
  footer: 'Ctrl-C ends the demo.',
};

describe('the picture', () => {
  test('has a line for each host, with a bar of its progress', () => {
    expect(paint({ ...picture, hosts: [cleaning] }, 80, false)).toEqual([
      '',
      '  01:23  agents: r1 connected, r2 away',
      '  h1    r1  ████████░░░░░░░░  cleaning          4/6 deploy.erase_devices 37 %',
      '  Ctrl-C ends the demo.',
    ]);
  });

  test('never writes a line that the terminal would break', () => {
    for (let columns = columnsMin; columns <= 250; columns += 1) {
      for (const line of paint(picture, columns, false)) {
        expect(line.length).toBeLessThan(columns);
        expect(line).not.toContain('\n');
      }
    }
  });

  test('says the same in colour', () => {
    const plain = paint(picture, 100, true).map((line) => line.replaceAll(/\x1b\[\d+m/g, ''));
    expect(plain).toEqual(paint(picture, 100, false));
  });
});

test('a line for where nothing can be painted over says when, who, how far and what', () => {
  expect(lineOf(cleaning, 83_400)).toBe(
    ' 83.4 s  h1   50 %  cleaning  4/6 deploy.erase_devices 37 %',
  );
});
