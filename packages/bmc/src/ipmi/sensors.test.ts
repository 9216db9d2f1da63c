import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { chassisHealth, firmwareVersion, logOf, sensorsOf } from './sensors.ts';

/** As ipmitool 1.8.19 prints them with `-v -c`; the sensors are those of an ipmi_sim. */
const printed = [
  'Temp,104,degrees C,Upper Critical,3.1,Processor,Temperature,40.000,10.000,90.000,110.000',
  'Inlet,31,degrees C,Upper Non-Critical,7.1,System Board,Temperature,40.000',
  'Fan1,5400,RPM,ok,29.1,Fan Device,Fan,400.000',
  'Fan2,,,ns,29.2,Fan Device,Fan,400.000',
  'CPU_Prochot,0x00,discrete,ns,3.1,Processor,Processor',
].join('\n');

describe('the list of sensors', () => {
  test('has names, readings and what the BMC thinks of them', () => {
    expect(sensorsOf(`${printed}\n`)).toEqual({
      sensors: [
        { name: 'Temp', kind: 'temperature', reading: 104, unit: 'degrees C', health: 'critical' },
        { name: 'Inlet', kind: 'temperature', reading: 31, unit: 'degrees C', health: 'warning' },
        { name: 'Fan1', kind: 'fan', reading: 5_400, unit: 'RPM', health: 'ok' },
        { name: 'Fan2', kind: 'fan', unit: '' },
        { name: 'CPU_Prochot', kind: 'other', unit: 'discrete' },
      ],
      complete: true,
    });
  });

  test('is bounded, and says what it left out', () => {
    const many = sensorsOf('Fan,1,RPM,ok\n'.repeat(1_000));
    expect(many.sensors).toHaveLength(256);
    expect(many.complete).toBe(false);
    expect(sensorsOf('no comma here\n')).toEqual({ sensors: [], complete: false });
  });
});

test('a log is shown with the newest first, and a threshold that is over as well', () => {
  const lines = [
    'SDRR successfully erased',
    '1, Pre-Init ,0000001271,Temperature #0x30,Upper Critical going high,Asserted',
    '2,11/27/2026,21:04:39,Temperature #0x30,Upper Critical going high,Deasserted',
    'a,11/27/2026,21:05:00,Power Supply #0x60,Failure detected,Asserted',
  ];
  const { entries } = logOf(lines.join('\n'), 2);
  expect(entries).toEqual([
    {
      id: 'a',
      time: '11/27/2026 21:05:00',
      message: 'Power Supply #0x60, Failure detected, Asserted',
    },
    {
      id: '2',
      time: '11/27/2026 21:04:39',
      severity: 'ok',
      message: 'Temperature #0x30, Upper Critical going high, Deasserted',
    },
  ]);
});

test('the chassis status tells which part has failed', () => {
  expect(chassisHealth([0x01, 0, 0])).toEqual({ level: 'ok', text: '' });
  // The restore policy and the intrusion bit are no faults.
  expect(chassisHealth([0x61, 0, 0x01])).toEqual({ level: 'ok', text: '' });
  expect(chassisHealth([0x09, 0, 0x0c])).toEqual({
    level: 'critical',
    text: 'power fault, drive fault, cooling or fan fault',
  });
  expect(chassisHealth([1])).toBeUndefined();
});

test('the version of the BMC has its minor part in decimal digits', () => {
  expect(firmwareVersion([0x20, 0x81, 0x89, 0x08, 2])).toBe('9.08');
  expect(firmwareVersion([0x20])).toBeUndefined();
});

test('any text at all gives a bounded list', () => {
  const text = fc.oneof(
    fc.string({ unit: 'binary', maxLength: 400 }),
    fc.array(fc.string(), { maxLength: 12 }).map((fields) => fields.join(',')),
  );
  fc.assert(
    fc.property(text, fc.integer({ min: 1, max: 5 }), (stdout, entriesMax) => {
      for (const { name, reading } of sensorsOf(stdout).sensors) {
        expect(name.length).toBeLessThanOrEqual(128);
        expect(reading === undefined || Number.isFinite(reading)).toBe(true);
      }
      expect(logOf(stdout, entriesMax).entries.length).toBeLessThanOrEqual(entriesMax);
    }),
    { numRuns: 200 },
  );
});
