import type { Exec, ExecResult } from '@rackwright/platform';
import { expect, test } from 'vitest';
import type { OwnWork } from '../machine/block-devices.ts';
import {
  formatNamespaces,
  readNvmeAskedFacts,
  readNvmeFacts,
  readNvmeLog,
  readNvmeWork,
} from './nvme.ts';
import { sanitizeLog } from './nvme-sanitize.fixture.ts';

/** nvme-cli with fixed answers; keeps its calls. */
function nvmeCli(answers: Record<string, object | ExecResult>): Exec & { asked: string[] } {
  const asked: string[] = [];
  return {
    asked,
    run: async ({ args, descriptors = [] }) => {
      asked.push([...descriptors, ...args].join(' '));
      const answer = answers[args.slice(0, 2).join(' ')];
      if (answer === undefined) return { kind: 'exited', code: 1, stdout: '', stderr: 'no such' };
      if ('kind' in answer) return answer;
      return { kind: 'exited', code: 0, stdout: JSON.stringify(answer), stderr: '' };
    },
  };
}

/** Two namespaces that are held open. */
const namespaces = [
  { name: 'nvme0n1', descriptor: 20, sizeBytes: 4096 },
  { name: 'nvme0n2', descriptor: 21, sizeBytes: 4096 },
];

test('the driver formats each namespace with the setting that was asked for', async () => {
  const done: ExecResult = { kind: 'exited', code: 0, stdout: 'Success\n', stderr: '' };
  const exec = nvmeCli({ 'format /dev/fd/3': done });
  const lines = await formatNamespaces(exec, namespaces, 'crypto');
  expect(exec.asked.map((each) => each.split(' ').slice(0, 4).join(' '))).toEqual([
    '20 format /dev/fd/3 --ses=2',
    '21 format /dev/fd/3 --ses=2',
  ]);
  expect(lines.filter((line) => line === 'Success')).toHaveLength(2);
});

test('the driver gives the tool’s words when a format fails', async () => {
  const failed: ExecResult = { kind: 'exited', code: 1, stdout: '', stderr: 'INTERNAL(0x6)\n' };
  const exec = nvmeCli({ 'format /dev/fd/3': failed });
  await expect(formatNamespaces(exec, namespaces.slice(0, 1), 'userData')).rejects.toThrow(
    /exit 1: INTERNAL\(0x6\)/,
  );
});

test('the driver keeps only so much of what a failed tool said', async () => {
  const stderr = 'the same complaint again\n'.repeat(10_000);
  const exec = nvmeCli({ 'format /dev/fd/3': { kind: 'exited', code: 1, stdout: '', stderr } });
  const error = await formatNamespaces(exec, namespaces.slice(0, 1), 'crypto').catch(String);
  expect(String(error).length).toBeLessThan(1024);
  expect(error).toContain('exit 1: the same complaint again');
});

test.each<[string, Record<string, object>, OwnWork | undefined]>([
  ['an idle device', { 'id-ns /dev/fd/3': { fpi: 0x80 } }, undefined],
  ['a device that cannot say', {}, undefined],
  [
    'a format under way',
    { 'id-ns /dev/fd/3': { fpi: 0x80 | 40 } },
    { kind: 'running', text: 'nvme0n1 has 40 % of a format left' },
  ],
  [
    'a sanitize under way',
    { 'sanitize-log /dev/fd/3': sanitizeLog('status', 2) },
    { kind: 'running', text: 'a sanitize is in progress (50 %)' },
  ],
  [
    'a sanitize that has failed',
    { 'sanitize-log /dev/fd/3': sanitizeLog('status', 3) },
    { kind: 'failed', text: 'the last sanitize has failed' },
  ],
  ['a sanitize that is over', { 'sanitize-log /dev/fd/3': sanitizeLog('status', 1) }, undefined],
])('the driver knows %s', async (_name, answers, work) => {
  expect(await readNvmeWork(nvmeCli(answers), namespaces.slice(0, 1))).toEqual(work);
});

test('the driver reads health and errors from the SMART log', async () => {
  const exec = nvmeCli({ 'smart-log /dev/fd/3': { media_errors: '0', critical_warning: 4 } });
  expect(await readNvmeLog(exec, namespaces)).toEqual([
    'smart-log critical_warning: 4',
    'smart-log media_errors: 0',
  ]);
});

test('the reader takes a value that is no number and no text as unreported', async () => {
  const identity = { unvmcap: { toString: 0 }, tnvmcap: [[[1]]], oacs: 8 };
  const exec = nvmeCli({
    'id-ctrl /dev/nvme0': identity,
    'list-ns /dev/nvme0': { nsid_list: [{ nsid: { toString: 0 } }, { toString: 0 }, [[2]], 3] },
  });
  const facts = await readNvmeFacts(exec, 'nvme0', [], [1]);
  expect(facts).toMatchObject({ hiddenNamespaces: [3] });
  expect(facts).not.toHaveProperty('unallocatedBytes');
  const { capacity } = await readNvmeAskedFacts(exec, 'nvme0');
  expect(capacity).toMatchObject({ kind: 'notExamined' });
});
