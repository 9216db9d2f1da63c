/** What a BMC answers by IPMI, by HTTP of a switched socket, and on its serial console. */

import type { OnConsoleOutput } from '../../../packages/bmc/src/driver.ts';
import {
  chassisPower,
  fruIdentity,
  guidHex,
  logEntries,
  manufacturerId,
  rawBytes,
  readBootFlags,
} from '../../../packages/bmc/src/ipmi/answers.ts';
import { refusalOf } from '../../../packages/bmc/src/ipmi/refusal.ts';
import {
  chassisHealth,
  firmwareVersion,
  logOf,
  sensorsOf,
} from '../../../packages/bmc/src/ipmi/sensors.ts';
import { openSol } from '../../../packages/bmc/src/ipmi/sol.ts';
import { stateIn } from '../../../packages/bmc/src/webhook/calls.ts';
import type { ExecRequest, ExecResult } from '../../../packages/platform/src/exec.ts';
import { documents, type Target, textOf, texts } from '../target.ts';
import { OwnTime } from './own-time.ts';

const rawReaders = [
  ...[manufacturerId, guidHex, chassisPower, logEntries],
  ...[readBootFlags, chassisHealth, firmwareVersion],
];

const fru = ` Chassis Part Number   : CHAS-1
 Chassis Serial        : CHS-0001
 Board Mfg             : Rackwright
 Board Serial          : BRD-0001
 Product Manufacturer  : Rackwright
 Product Name          : Lab Host
 Product Serial        : HOST-0001
`;

const sensors = [
  'Temp,104,degrees C,Upper Critical,3.1,Processor,Temperature,40.000,10.000,90.000,110.000',
  'Inlet,31,degrees C,Upper Non-Critical,7.1,System Board,Temperature,40.000',
  'Fan1,5400,RPM,ok,29.1,Fan Device,Fan,400.000',
  'CPU_Prochot,0x00,discrete,ns,3.1,Processor,Processor',
].join('\n');

const log = [
  '1, Pre-Init ,0000001271,Temperature #0x30,Upper Critical going high,Asserted',
  'a,11/27/2026,21:05:00,Power Supply #0x60,Failure detected,Asserted',
].join('\n');

const relay = {
  ...{ onPath: '/on', offPath: '/off', statePath: '/state', method: '', onBody: '', offBody: '' },
  ...{ secretHeader: '', plainHttp: false, onValues: ['open'], offValues: [] },
};

async function serialConsole(input: Uint8Array): Promise<unknown> {
  const heard: Uint8Array[] = [];
  const hear: OnConsoleOutput = (bytes) => heard.push(bytes);
  const run = async ({ onOutput }: ExecRequest): Promise<ExecResult> => {
    const middle = Math.floor(input.length / 2);
    for (const piece of [input.subarray(0, middle), input.subarray(middle)]) onOutput?.(piece);
    return { kind: 'exited', code: 1, stdout: textOf(input), stderr: '' };
  };
  const clock = new OwnTime();
  const target = {
    ...{ address: '192.0.2.1', port: 623, user: 'operator', password: 'word-that-hides' },
    ...{ credential: 'credentials/test@1', cipherSuite: 17 },
  };
  const ipmitool = { path: 'ipmitool', callTimeoutMs: 1_000 };
  const opened = await clock.settle(openSol({ exec: { run }, clock, ipmitool, target }, hear));
  if (opened.kind === 'ok') opened.value.close();
  return [opened.kind === 'ok' ? 'ok' : opened, heard];
}

export const targets: readonly Target[] = [
  {
    name: 'bmc.ipmi-raw',
    form: 'text',
    seeds: texts(
      ' 00 03 09 08 02 9f 91 12 00 02 0f 00 00 00 00\n',
      ' 00 11 22 33 44 55 66 77 88 99 aa bb cc dd ee ff\n',
      ' 01 05 00 04 00 00 00\n',
    ),
    parse: (input) => {
      const bytes = rawBytes(textOf(input));
      return bytes && rawReaders.map((read) => read(bytes));
    },
    refusals: [],
    tokens: [' 00', ' ff', '\n', ' 80'],
  },
  {
    name: 'bmc.ipmi-fru',
    form: 'text',
    seeds: texts(fru),
    parse: (input) => fruIdentity(textOf(input)),
    refusals: [],
    tokens: [' Product Serial : ', ' Board Serial : ', '\n', ' : '],
  },
  {
    name: 'bmc.ipmi-sensors',
    form: 'text',
    seeds: texts(sensors),
    parse: (input) => sensorsOf(textOf(input)),
    refusals: [],
    tokens: [',', '\n', 'Temperature', 'Fan', 'ok', 'ns', 'Upper Critical', 'discrete'],
  },
  {
    name: 'bmc.ipmi-log',
    form: 'text',
    seeds: texts(log),
    parse: (input) => logOf(textOf(input), 50),
    refusals: [],
    tokens: [',', '\n', 'Asserted', 'Deasserted', 'Pre-Init', 'Critical'],
  },
  {
    name: 'bmc.ipmi-refusal',
    form: 'text',
    seeds: texts(
      'Error: Unable to establish IPMI v2 / RMCP+ session\n',
      'RAKP 2 message indicates an error : unauthorized name\n',
      'Unable to send RAW command (channel=0x0 netfn=0x6 lun=0x0 cmd=0x1 rsp=0xc1): Invalid',
    ),
    parse: (input) => {
      const text = textOf(input);
      return [0, 1, 127].map((code) =>
        refusalOf({ kind: 'exited', code, stdout: '', stderr: text }, 'word-that-hides'),
      );
    },
    refusals: [],
    tokens: ['rsp=0x', 'timeout', 'word-that-hides', '\n', 'no response', 'unauthorized'],
  },
  {
    name: 'bmc.serial-console',
    form: 'bytes',
    seeds: texts('[SOL Session operational.  Use ~? for help]\nlogin: ', 'Info: SOL payload\n'),
    parse: serialConsole,
    refusals: [],
    tokens: ['[SOL Session operational.', '\n', '\x1b[2J'],
  },
  {
    name: 'bmc.webhook-state',
    form: 'json',
    seeds: documents({ relays: [{ on: true }, { on: 'off' }] }, { relays: { 0: { on: 1 } } }, 'on'),
    parse: (input) =>
      ['relays.0.on', '', '__proto__.on', 'length'].map((stateField) =>
        stateIn(input, { ...relay, stateField }),
      ),
    refusals: [],
    tokens: ['relays', 'on', 'off', 'open'],
  },
];
