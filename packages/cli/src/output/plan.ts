/** A plan as people read it. */
import { type Duration, durationMs } from '@bufbuild/protobuf/wkt';
import { sizeText } from '@rackwright/disk-image/size';
import {
  counted,
  HostRefusal,
  type Plan,
  type PlannedDevice,
  type PlannedStep,
  shownArguments,
  stepText,
} from '@rackwright/messages';
import type { Clock } from '@rackwright/platform';
import { enumName } from './enum-name.ts';
import { formatTable, type TextColumn } from './table.ts';
import { clean } from './text.ts';
import { ago, duration } from './time.ts';

/** The lines of a plan; `columns` is the terminal's width or undefined. */
export function planLines(plan: Plan, clock: Clock, columns: number | undefined): string[] {
  const { name, kind, steps, devices, dataLoss, notes, stages } = plan;
  const [, host = '', , hash = ''] = name.split('/');
  const usual = plan.usualDuration === undefined ? '' : `, usually ${text(plan.usualDuration)}`;
  const count = counted(steps.length, 'step');
  return [
    `hosts/${host}: ${enumName('RunKind', kind)}, ${count}${usual}; nothing has been started`,
    ...section('In this order:', stages),
    '',
    ...tableOf(stepColumns, [...steps.entries()], columns),
    ...(devices.length === 0 ? [] : ['', ...tableOf(deviceColumns, devices, columns)]),
    ...(dataLoss.length === 0 ? ['', 'No data is lost.'] : section('Lost for ever:', dataLoss)),
    ...section('To know:', notes),
    '',
    ...(plan.refusal === HostRefusal.UNSPECIFIED
      ? [
          `Start it (expires ${ago(clock, plan.expireTime)}):`,
          `  rackwright host start ${host} ${hash}`,
        ]
      : [`It would be refused now: ${clean(plan.refused)}`]),
  ];
}

/** Without columns that are empty. */
function tableOf<T>(
  columnsOfTable: readonly TextColumn<T>[],
  rows: readonly T[],
  columns: number | undefined,
): string[] {
  const used = columnsOfTable.filter(({ value }) => rows.some((row) => value(row) !== ''));
  return formatTable(used, rows, columns);
}

function section(title: string, lines: readonly string[]): string[] {
  return lines.length === 0 ? [] : ['', title, ...lines.map((line) => `  ${clean(line)}`)];
}

type NumberedStep = readonly [index: number, step: PlannedStep];

const stepColumns: TextColumn<NumberedStep>[] = [
  { title: '#', value: ([index]) => String(index + 1) },
  { title: 'STEP', value: ([, { step, title }]) => stepText({ name: step, title }) },
  { title: 'DESTROYS', value: ([, { destructive }]) => (destructive ? 'yes' : ''), dropOrder: 1 },
  {
    title: 'AFTER A CRASH',
    value: ([, { rerunClass }]) => enumName('RerunClass', rerunClass),
    dropOrder: 4,
  },
  { title: 'USUALLY', value: ([, { usualDuration }]) => text(usualDuration), dropOrder: 3 },
  { title: 'WHEN', value: ([, { condition }]) => condition, dropOrder: 2, widthMin: 10 },
  { title: 'ARGUMENTS', value: ([, step]) => argumentsText(step), dropOrder: 5, widthMin: 20 },
];

const deviceColumns: TextColumn<PlannedDevice>[] = [
  { title: 'DISK', value: ({ serial, wwn }) => serial || wwn },
  { title: 'SIZE', value: ({ sizeBytes }) => sizeText(sizeBytes), dropOrder: 1 },
  { title: 'MODEL', value: ({ model }) => model, dropOrder: 2 },
  { title: 'SEEN AS', value: ({ kernelName }) => kernelName, dropOrder: 3 },
  { title: 'WHAT HAPPENS', value: ({ fate }) => fate, widthMin: 20 },
  { title: 'READ BACK', value: readBackText, dropOrder: 4 },
  { title: 'ABOUT', value: timeText, dropOrder: 5 },
  { title: 'CAN MISS', value: ({ canMiss }) => canMiss, dropOrder: 6, widthMin: 20 },
];

/** "whole, 16384 reads"; reads include repeated ones. */
function readBackText({ verification, reads }: PlannedDevice): string {
  return verification === '' ? '' : `${verification}, ${reads} reads`;
}

/** "31 h"; "31 h (measured)" where the disk itself was measured before. */
function timeText({ time, timeFromMeasurement }: PlannedDevice): string {
  return timeFromMeasurement ? `${text(time)} (measured)` : text(time);
}

/** Characters of one value that a table shows. */
const valueMax = 40;

function argumentsText({ arguments: given }: PlannedStep): string {
  return shownArguments(given, valueMax)
    .map(([name, value]) => `${name}=${value}`)
    .join(' ');
}

function text(usual: Duration | undefined): string {
  return usual === undefined ? '' : duration(durationMs(usual));
}
