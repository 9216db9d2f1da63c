import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import {
  bootFlagsDifference,
  bootFlagsFor,
  chassisPower,
  fruIdentity,
  guidHex,
  manufacturerId,
  rawBytes,
  readBootFlags,
} from './answers.ts';

// Captured from ipmitool 1.8.19 against ipmi_sim (OpenIPMI 2.0.33), both of Debian 12.
const deviceId = ' 00 03 09 08 02 9f 91 12 00 02 0f 00 00 00 00\n';
const systemGuid = ' 00 11 22 33 44 55 66 77 88 99 aa bb cc dd ee ff\n';
const chassisOn = ' 01 00 00\n';
const chassisOff = ' 00 00 00\n';
const bootPxe = ' 01 05 00 04 00 00 00\n';
const fru = ` Chassis Type          : Rack Mount Chassis
 Chassis Part Number   : CHAS-1
 Chassis Serial        : CHS-0001
 Board Mfg Date        : Unspecified
 Board Mfg             : Rackwright
 Board Product         : Board
 Board Serial          : BRD-0001
 Board Part Number     : BPN
 Board FRU ID          :  
 Product Manufacturer  : Rackwright
 Product Name          : Lab Host
 Product Part Number   : LH-1
 Product Version       : 1.0
 Product Serial        : HOST-0001
 Product Asset Tag     : ASSET-1
 Product FRU ID        : fid
`;

const parsed = <T>(text: string, read: (bytes: readonly number[]) => T): T => {
  const bytes = rawBytes(text);
  if (bytes === undefined) throw new Error('not bytes');
  return read(bytes);
};

describe('raw answers', () => {
  test('are read from what ipmitool prints', () => {
    expect(parsed(deviceId, manufacturerId)).toBe(0x1291);
    expect(parsed(systemGuid, guidHex)).toBe('00112233445566778899aabbccddeeff');
    expect(parsed(chassisOn, chassisPower)).toBe('on');
    expect(parsed(chassisOff, chassisPower)).toBe('off');
    expect(parsed(bootPxe, readBootFlags)).toEqual({ flags: 0, device: 4 });
    expect(rawBytes('\n')).toEqual([]);
  });

  test('an answer that is too short has no value', () => {
    for (const [text, read] of [
      [deviceId, manufacturerId],
      [systemGuid, guidHex],
      [chassisOn, chassisPower],
      [bootPxe, readBootFlags],
    ] as const) {
      const needed = read === manufacturerId ? 9 : (rawBytes(text) ?? []).length;
      for (let length = 0; length < needed; length += 1) {
        expect(read((rawBytes(text) ?? []).slice(0, length))).toBeUndefined();
      }
    }
  });

  test('answers with anything but bytes mean nothing', () => {
    for (const text of ['zz', '0x01', '001', 'Invalid command', ' 00 1']) {
      expect(rawBytes(text)).toBeUndefined();
    }
  });

  test('answers of another boot parameter, or a locked one, are not boot flags', () => {
    expect(readBootFlags([1, 3, 0, 4, 0, 0, 0])).toBeUndefined();
    expect(readBootFlags([1, 0x85, 0x80, 4, 0, 0, 0])).toEqual({ flags: 0x80, device: 4 });
  });

  test('answers of any bytes are read without a throw', () => {
    fc.assert(
      fc.property(fc.array(fc.nat(255), { maxLength: 32 }), (bytes) => {
        const text = bytes.map((byte) => ` ${byte.toString(16).padStart(2, '0')}`).join('');
        expect(rawBytes(text)).toEqual(bytes);
        for (const read of [manufacturerId, guidHex, chassisPower, readBootFlags]) read(bytes);
      }),
    );
  });
});

describe('boot flags', () => {
  test('are for the next boot only, with the EFI bit for UEFI', () => {
    expect(bootFlagsFor({ device: 'network', firmware: 'bios' })).toEqual({
      flags: 0x80,
      device: 4,
    });
    expect(bootFlagsFor({ device: 'disk', firmware: 'uefi' })).toEqual({ flags: 0xa0, device: 8 });
    expect(bootFlagsFor({ device: 'none', firmware: 'uefi' })).toEqual({ flags: 0, device: 0 });
  });

  test('differ by device, by flags, or not at all', () => {
    const wanted = { flags: 0xa0, device: 4 };
    expect(bootFlagsDifference(wanted, { flags: 0xa0, device: 4 })).toBe('none');
    // Verbosity bits of others are none of our business.
    expect(bootFlagsDifference(wanted, { flags: 0xa0, device: 0x84 })).toBe('none');
    expect(bootFlagsDifference(wanted, { flags: 0x80, device: 4 })).toBe('flags');
    expect(bootFlagsDifference(wanted, { flags: 0x20, device: 4 })).toBe('flags');
    expect(bootFlagsDifference(wanted, { flags: 0xa0, device: 8 })).toBe('device');
  });

  test('flags without "valid" are no override, whatever device they name', () => {
    const none = { flags: 0, device: 0 };
    expect(bootFlagsDifference(none, { flags: 0, device: 4 })).toBe('none');
    expect(bootFlagsDifference(none, { flags: 0x80, device: 0 })).toBe('flags');
    expect(bootFlagsDifference(none, { flags: 0x80, device: 4 })).toBe('device');
  });
});

describe('a FRU print', () => {
  test('gives maker, product and the three serials', () => {
    expect(fruIdentity(fru)).toEqual({
      manufacturer: 'Rackwright',
      product: 'Lab Host',
      serial: 'HOST-0001',
      boardSerial: 'BRD-0001',
      chassisSerial: 'CHS-0001',
    });
  });

  test('counts blanks as absent and keeps the first of equal labels', () => {
    const text = ' Product Serial : \n Board Serial : B1\n Board Serial : B2\n';
    expect(fruIdentity(text)).toEqual({ boardSerial: 'B1' });
  });

  test('keeps colons and drops control characters and excess length', () => {
    const text = `Product Serial : a:b\u0007c\nProduct Name : ${'x'.repeat(500)}`;
    expect(fruIdentity(text)).toEqual({ serial: 'a:bc', product: 'x'.repeat(64) });
  });
});
