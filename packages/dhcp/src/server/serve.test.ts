import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { dhcpOption, readOption, writeOption } from '../options.ts';
import { decodeDhcp, encodeDhcp } from '../packet.ts';
import { readServerRequest } from './request.ts';
import {
  answerOf,
  declinedMs,
  leaseSeconds,
  mac,
  packetOf,
  reservedAddress,
  serverAddress,
  TestSite,
  typeOf,
  usualPlan,
} from './test-site.ts';

const leaseMs = leaseSeconds * 1_000;
const knownOnly = {
  network: usualPlan.network,
  reservations: [],
  range: usualPlan.range ?? never(),
};

function never(): never {
  throw new Error('the usual plan has a range');
}

describe('a discover', () => {
  test('a discover of a known host is offered an address of its range, with all options', () => {
    const site = new TestSite();
    const decision = site.say(mac.one, { type: 'discover' });
    const offer = answerOf(decision);
    expect(offer.yourAddress).toMatch(/^10\.77\.0\.5\d$/);
    expect(offer).toMatchObject({ op: 'reply', clientAddress: '0.0.0.0', bootFile: '' });
    expect(typeOf(offer)).toBe('offer');
    expect(readOption(offer, dhcpOption.serverIdentifier)).toBe(serverAddress);
    expect(readOption(offer, dhcpOption.leaseSeconds)).toBe(3_600);
    expect(readOption(offer, dhcpOption.renewalSeconds)).toBe(1_800);
    expect(readOption(offer, dhcpOption.rebindingSeconds)).toBe(3_150);
    expect(readOption(offer, dhcpOption.subnetMask)).toBe('255.255.255.0');
    expect(readOption(offer, dhcpOption.broadcastAddress)).toBe('10.77.0.255');
    expect(readOption(offer, dhcpOption.routers)).toEqual(['10.77.0.254']);
    expect(readOption(offer, dhcpOption.nameServers)).toEqual(['10.77.0.1', '10.77.0.2']);
    expect(readOption(offer, dhcpOption.domainName)).toBe('rack.example');
    expect(decision.reply?.to).toEqual({ address: '255.255.255.255', port: 68 });
  });

  test('a discover of a MAC with a reservation is offered that, also within the range', () => {
    const site = new TestSite();
    expect(answerOf(site.say(mac.reserved, { type: 'discover' })).yourAddress).toBe(
      reservedAddress,
    );
    const others = new Set([mac.one, mac.two].map((one) => site.lease(one)));
    expect(others.has(reservedAddress)).toBe(false);
  });

  test('a discover of a stranger gets an address for discovery, or nothing without a range', () => {
    const { yourAddress } = answerOf(new TestSite().say(mac.stranger, { type: 'discover' }));
    expect(yourAddress).toMatch(/^10\.77\.0\.20[0-3]$/);
    const decision = new TestSite(knownOnly).say(mac.stranger, { type: 'discover' });
    expect(decision).toMatchObject({ reply: undefined, changes: [], reason: 'unknown host' });
  });

  test('gets the address that it asks for when nobody has it', () => {
    const site = new TestSite();
    const offer = answerOf(site.say(mac.one, { type: 'discover', requested: '10.77.0.57' }));
    expect(offer.yourAddress).toBe('10.77.0.57');
    const second = answerOf(site.say(mac.two, { type: 'discover', requested: '10.77.0.57' }));
    expect(second.yourAddress).not.toBe('10.77.0.57');
    const reserved = site.say(mac.two, { type: 'discover', requested: reservedAddress });
    expect(answerOf(reserved).yourAddress).not.toBe(reservedAddress);
  });

  test('does not end the lease that its client has', () => {
    const site = new TestSite();
    const address = site.lease(mac.stranger);
    site.say(mac.stranger, { type: 'discover' });
    site.nowMs += leaseMs / 2;
    expect(site.book.leaseOf(mac.stranger)).toMatchObject({ address, bound: true });
    expect(site.book.leaseOf(mac.stranger)?.untilMs).toBeGreaterThan(site.nowMs + 60_000);
  });

  test('a discover that leads to another address keeps the old one until its lease ends', () => {
    const one = { first: '10.77.0.200', last: '10.77.0.200' };
    const site = new TestSite({ ...usualPlan, discovery: one });
    site.lease(mac.stranger);
    site.known.add(mac.stranger);
    expect(site.lease(mac.stranger)).toMatch(/^10\.77\.0\.5\d$/);
    expect(site.say(mac.otherStranger, { type: 'discover' }).reply).toBeUndefined();
    site.nowMs += leaseMs + 60_000;
    expect(site.lease(mac.otherStranger)).toBe('10.77.0.200');
  });

  test('finds no address when all are held, and says so', () => {
    const site = new TestSite({ ...knownOnly, range: { first: '10.77.0.9', last: '10.77.0.9' } });
    site.lease(mac.one);
    site.nowMs += 100 * leaseMs;
    const decision = site.say(mac.two, { type: 'discover' });
    expect(decision.reply).toBeUndefined();
    expect(decision.notice).toEqual({ kind: 'noAddressLeft', mac: mac.two });
  });

  test('takes over what a host left behind that is known no longer', () => {
    const site = new TestSite({ ...knownOnly, range: { first: '10.77.0.9', last: '10.77.0.9' } });
    site.lease(mac.one);
    site.known.delete(mac.one);
    expect(site.say(mac.two, { type: 'discover' }).reply).toBeUndefined();
    site.nowMs += leaseMs + 60_000;
    expect(site.lease(mac.two)).toBe('10.77.0.9');
  });

  test('a discover of a stranger that never comes back holds its address for a minute', () => {
    const one = { first: '10.77.0.200', last: '10.77.0.200' };
    const site = new TestSite({ ...usualPlan, discovery: one });
    site.say(mac.stranger, { type: 'discover' });
    expect(site.say(mac.otherStranger, { type: 'discover' }).reply).toBeUndefined();
    site.nowMs += 60_001;
    expect(site.lease(mac.otherStranger)).toBe('10.77.0.200');
  });
});

describe('a request that selects', () => {
  test('our offer is acknowledged', () => {
    const site = new TestSite();
    const address = site.lease(mac.one);
    expect(site.book.leaseOf(mac.one)).toMatchObject({ address, bound: true });
  });

  test('an address of somebody else is refused', () => {
    const site = new TestSite();
    const address = site.lease(mac.one);
    const request = { type: 'request', requested: address, server: serverAddress } as const;
    const decision = site.say(mac.two, request);
    const nak = answerOf(decision);
    expect(typeOf(nak)).toBe('nak');
    expect(nak).toMatchObject({ yourAddress: '0.0.0.0', clientAddress: '0.0.0.0', bootFile: '' });
    expect([...nak.options.keys()]).toEqual([53, 54, 56]);
    expect(decision.reply?.to).toEqual({ address: '255.255.255.255', port: 68 });
  });

  test('an offer that we made before a restart is acknowledged still', () => {
    const site = new TestSite();
    const { yourAddress } = answerOf(site.say(mac.stranger, { type: 'discover' }));
    site.book = new TestSite().book;
    const request = { type: 'request', requested: yourAddress, server: serverAddress } as const;
    expect(typeOf(answerOf(site.say(mac.stranger, request)))).toBe('ack');
  });

  test('several addresses, one after the other, gets the first only', () => {
    const site = new TestSite();
    const request = { type: 'request', server: serverAddress } as const;
    const answers = ['10.77.0.51', '10.77.0.52', '10.77.0.53'].map((requested) =>
      typeOf(answerOf(site.say(mac.one, { ...request, requested }))),
    );
    expect(answers).toEqual(['ack', 'nak', 'nak']);
  });
});

describe('a client that starts again with an address', () => {
  test('keeps its own', () => {
    const site = new TestSite();
    const requested = site.lease(mac.one);
    const ack = answerOf(site.say(mac.one, { type: 'request', requested }));
    expect([typeOf(ack), ack.yourAddress]).toEqual(['ack', requested]);
  });

  test('is refused one that is another’s, or of another network', () => {
    const site = new TestSite();
    const taken = site.lease(mac.two);
    for (const requested of [taken, '192.0.2.7', '10.77.0.77']) {
      const decision = site.say(mac.one, { type: 'request', requested });
      expect(typeOf(answerOf(decision))).toBe('nak');
    }
  });

  test('keeps its address as a known host when our book was lost', () => {
    const site = new TestSite();
    const requested = site.lease(mac.one);
    site.book = new TestSite().book;
    const ack = answerOf(site.say(mac.one, { type: 'request', requested }));
    expect([typeOf(ack), ack.yourAddress]).toEqual(['ack', requested]);
  });

  test('hears nothing as a stranger of whom we have no record', () => {
    const site = new TestSite();
    const decision = site.say(mac.stranger, { type: 'request', requested: '10.77.0.201' });
    expect(decision).toMatchObject({ reply: undefined, reason: 'no record of this client' });
    const elsewhere = site.say(mac.stranger, { type: 'request', requested: '192.0.2.7' });
    expect(typeOf(answerOf(elsewhere))).toBe('nak');
    const unserved = new TestSite(knownOnly);
    const silent = unserved.say(mac.stranger, { type: 'request', requested: '192.0.2.7' });
    expect(silent.reply).toBeUndefined();
  });
});

describe('a client that extends its lease', () => {
  test('is acknowledged at its address', () => {
    const site = new TestSite();
    const address = site.lease(mac.one);
    site.nowMs += leaseMs / 2;
    const decision = site.say(mac.one, { type: 'request', clientAddress: address });
    const ack = answerOf(decision);
    expect(ack).toMatchObject({ clientAddress: address, yourAddress: address });
    expect(readOption(ack, dhcpOption.leaseSeconds)).toBe(leaseSeconds);
    expect(decision.reply?.to).toEqual({ address, port: 68 });
    expect(site.book.leaseOf(mac.one)?.untilMs).toBeGreaterThanOrEqual(site.nowMs + leaseMs);
  });

  test('is refused by broadcast when the address is not its own', () => {
    const site = new TestSite();
    site.lease(mac.one);
    const decision = site.say(mac.one, { type: 'request', clientAddress: '10.77.0.77' });
    expect(typeOf(answerOf(decision))).toBe('nak');
    expect(decision.reply?.to.address).toBe('255.255.255.255');
  });
});

describe('an address that its client declines', () => {
  test('is out of use for a time, and the client gets another', () => {
    const site = new TestSite();
    const declined = site.lease(mac.one);
    const message = { type: 'decline', requested: declined, server: serverAddress } as const;
    const decision = site.say(mac.one, message);
    expect(decision.reply).toBeUndefined();
    expect(decision.notice).toEqual({ kind: 'declined', mac: mac.one, address: declined });
    expect(site.lease(mac.one)).not.toBe(declined);
    const wish = { type: 'discover', requested: declined } as const;
    expect(answerOf(site.say(mac.two, wish)).yourAddress).not.toBe(declined);
    site.nowMs += declinedMs;
    expect(answerOf(site.say(mac.three, wish)).yourAddress).not.toBe(declined);
    site.known.add(mac.three);
    expect(answerOf(site.say(mac.three, wish)).yourAddress).toBe(declined);
  });

  test('is replaced by one of the range when it was reserved, and comes back later', () => {
    const site = new TestSite(usualPlan, [mac.reserved]);
    const message = { type: 'decline', requested: reservedAddress, server: serverAddress } as const;
    site.lease(mac.reserved);
    site.say(mac.reserved, message);
    expect(site.lease(mac.reserved)).toMatch(/^10\.77\.0\.5[1-9]$/);
    site.nowMs += declinedMs;
    expect(site.lease(mac.reserved)).toBe(reservedAddress);
  });

  test('must be its own', () => {
    const site = new TestSite();
    const requested = site.lease(mac.one);
    const decision = site.say(mac.two, { type: 'decline', requested, server: serverAddress });
    expect(decision).toMatchObject({ changes: [], notice: undefined });
  });

  test('is one of few: a client that declines all of them does not use up the range', () => {
    const site = new TestSite();
    for (let round = 0; round < 20; round += 1) {
      const requested = site.lease(mac.one);
      site.say(mac.one, { type: 'decline', requested, server: serverAddress });
    }
    expect(site.book.records(site.nowMs).setAside).toHaveLength(4);
    site.lease(mac.two);
  });
});

test('a release ends the lease, and the host keeps its address for the next time', () => {
  const site = new TestSite();
  const address = site.lease(mac.one);
  const decision = site.say(mac.one, {
    type: 'release',
    clientAddress: address,
    server: serverAddress,
  });
  expect(decision.reply).toBeUndefined();
  expect(site.book.leaseOf(mac.one)).toMatchObject({ address, bound: false, untilMs: site.nowMs });
  expect(site.lease(mac.one)).toBe(address);
  const foreign = { type: 'release', clientAddress: address, server: serverAddress } as const;
  expect(site.say(mac.two, foreign).changes).toEqual([]);
});

test('an inform is answered with what the subnet has, and without a lease', () => {
  const site = new TestSite();
  const decision = site.say(mac.one, { type: 'inform', clientAddress: '10.77.0.77' });
  const ack = answerOf(decision);
  expect([typeOf(ack), ack.yourAddress]).toEqual(['ack', '0.0.0.0']);
  expect(ack.options.has(dhcpOption.leaseSeconds.code)).toBe(false);
  expect(readOption(ack, dhcpOption.routers)).toEqual(['10.77.0.254']);
  expect(decision.reply?.to).toEqual({ address: '10.77.0.77', port: 68 });
  expect(site.book.leaseOf(mac.one)).toBeUndefined();
});

describe('a relay', () => {
  test('a relay of our subnet gets answers at its own address, refusals as broadcast', () => {
    const site = new TestSite();
    const relayAddress = '10.77.0.253';
    const to = { address: relayAddress, port: 67 };
    const more = [writeOption(dhcpOption.relayAgent, [[1, Uint8Array.of(7)]])];
    const offer = site.say(mac.one, { type: 'discover', relayAddress, more });
    expect(offer.reply?.to).toEqual(to);
    expect([...answerOf(offer).options.keys()].at(-1)).toBe(82);
    const wrong = { type: 'request', clientAddress: '10.77.0.77', relayAddress } as const;
    const nak = site.say(mac.one, wrong);
    expect(nak.reply?.to).toEqual(to);
    expect(answerOf(nak).flags & 0x8000).toBe(0x8000);
  });

  test('a relay of another network is not answered', () => {
    const decision = new TestSite().say(mac.one, { type: 'discover', relayAddress: '10.78.0.1' });
    expect(decision).toMatchObject({ reply: undefined, reason: 'a relay of another network' });
  });
});

describe('another server', () => {
  const foreign = { type: 'request', requested: '10.77.0.120', server: '10.77.0.2' } as const;

  test('is told of when a client of ours, or one with an address of ours, chooses it', () => {
    const site = new TestSite(knownOnly);
    const notice = { kind: 'otherServer', serverAddress: '10.77.0.2' };
    expect(site.say(mac.one, foreign)).toMatchObject({ reply: undefined, notice });
    expect(site.say(mac.one, { ...foreign, requested: '192.0.2.7' })).toMatchObject({ notice });
    expect(site.say(mac.stranger, foreign)).toMatchObject({ notice });
    const strangers = site.say(mac.stranger, { ...foreign, requested: '192.0.2.7' });
    expect(strangers.notice).toBeUndefined();
  });

  test('frees what we held for a stranger that chose it', () => {
    const site = new TestSite();
    site.say(mac.stranger, { type: 'discover' });
    site.say(mac.stranger, foreign);
    expect(site.book.leaseOf(mac.stranger)).toBeUndefined();
  });

  test('makes us silent to everyone but those whose lease runs', () => {
    const site = new TestSite();
    const address = site.lease(mac.one);
    site.quiet = true;
    const reason = 'another server is at work';
    const select = { type: 'request', requested: '10.77.0.55', server: serverAddress } as const;
    for (const message of [
      { type: 'discover' } as const,
      { type: 'request', requested: '10.77.0.55' } as const,
      { type: 'request', clientAddress: '192.0.2.1' } as const,
      { type: 'inform', clientAddress: '10.77.0.55' } as const,
      select,
    ]) {
      expect(site.say(mac.two, message)).toMatchObject({ reply: undefined, changes: [], reason });
    }
    const extended = site.say(mac.one, { type: 'request', clientAddress: address });
    expect(typeOf(answerOf(extended))).toBe('ack');
    site.nowMs += 2 * leaseMs;
    const late = site.say(mac.one, { type: 'request', clientAddress: address });
    expect(late).toMatchObject({ reply: undefined, reason });
  });

  test('does not make its clients’ releases and declines ours', () => {
    const site = new TestSite();
    const address = site.lease(mac.one);
    for (const message of [
      { type: 'release', clientAddress: address, server: '10.77.0.2' } as const,
      { type: 'decline', requested: address, server: '10.77.0.2' } as const,
    ]) {
      expect(site.say(mac.one, message)).toMatchObject({ changes: [], notice: undefined });
    }
  });
});

test.each([
  ['an Ethernet that is none', packetOf(mac.one, { type: 'discover', hardwareType: 32 })],
  ['BOOTP', packetOf(mac.one, {})],
  ['an offer', packetOf(mac.one, { type: 'offer' })],
  ['a request for nothing', packetOf(mac.one, { type: 'request' })],
  ['a decline without a server', packetOf(mac.one, { type: 'decline', requested: '10.77.0.9' })],
  ['a release of nothing', packetOf(mac.one, { type: 'release', server: serverAddress })],
  ['an inform without an address', packetOf(mac.one, { type: 'inform' })],
  ['half an address', packetOf(mac.one, { type: 'request', more: [[50, Uint8Array.of(10)]] })],
  ['the offer of a proxy', packetOf(mac.one, { op: 'reply', type: 'offer', server: '10.77.0.2' })],
])('the server does not answer %s', (_name, packet) => {
  expect(readServerRequest(packet, { address: '0.0.0.0', port: 68 }).kind).toBe('silence');
});

test('an offer of another server shows that it gives addresses', () => {
  const fields = {
    op: 'reply',
    type: 'offer',
    server: '10.77.0.2',
    yourAddress: '10.77.0.9',
  } as const;
  const found = readServerRequest(packetOf(mac.one, fields), { address: '10.77.0.2', port: 67 });
  expect(found).toMatchObject({ kind: 'otherAnswer', server: '10.77.0.2', address: '10.77.0.9' });
});

test('every answer to anything fits a frame, and carries no foreign address', () => {
  const types = fc.constantFrom('discover', 'request', 'decline', 'release', 'inform' as const);
  const last = fc.constantFrom(
    '10.77.0.51',
    '10.77.0.201',
    reservedAddress,
    '192.0.2.1',
    '0.0.0.0',
  );
  const optional = fc.option(last, { nil: undefined });
  const option = fc.tuple(
    fc.integer({ min: 1, max: 254 }).filter((code) => code !== 52),
    fc.uint8Array({ maxLength: 600 }),
  );
  const who = fc.constantFrom(...Object.values(mac));
  fc.assert(
    fc.property(
      fc.array(fc.tuple(who, types, optional, last, fc.array(option, { maxLength: 3 })), {
        maxLength: 12,
      }),
      (messages) => {
        const site = new TestSite();
        site.permission = 'runner';
        for (const [whose, type, requested, clientAddress, more] of messages) {
          const asked = packetOf(whose, {
            type,
            ...(requested === undefined ? {} : { requested }),
            clientAddress,
          });
          const options = new Map([...asked.options, ...more]);
          const read = readServerRequest({ ...asked, options }, { address: '0.0.0.0', port: 68 });
          if (read.kind !== 'asked') continue;
          const { reply } = site.hear(read.request.packet);
          if (reply === undefined) continue;
          expect(encodeDhcp(reply.packet).length).toBeLessThanOrEqual(1_472);
          const { yourAddress } = decodeDhcp(encodeDhcp(reply.packet));
          expect(yourAddress).toMatch(/^(0\.0\.0\.0|10\.77\.0\.(5\d|20[0-3]))$/);
        }
      },
    ),
    { numRuns: 300 },
  );
});
