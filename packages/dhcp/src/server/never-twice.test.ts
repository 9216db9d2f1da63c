import fc from 'fast-check';
import { expect, test } from 'vitest';
import { asMac } from '../mac.ts';
import type { DhcpPacket } from '../packet.ts';
import { dottedAddress } from '../subnet.ts';
import type { AddressPlanSettings } from './address-plan.ts';
import { leaseSeconds, type Message, serverAddress, TestSite, typeOf } from './test-site.ts';

const macs = Array.from({ length: 7 }, (_, index) => asMac(`52:54:00:00:00:0${index}`));

/** Fewer addresses than clients, so that they get into each other's way. */
const plan: AddressPlanSettings = {
  network: '10.77.0.0/24',
  reservations: [{ mac: asMac('52:54:00:00:00:00'), address: '10.77.0.10' }],
  range: { first: '10.77.0.10', last: '10.77.0.12' },
  discovery: { first: '10.77.0.20', last: '10.77.0.21' },
};

/**
 * The state of one client: its offer, the address that it takes for its own, and all that it may
 * still use, also when it has asked for another one meanwhile.
 */
interface Client {
  offered?: string;
  address?: string;
  readonly useUntilMs: Map<string, number>;
}

const anyAddress = fc.integer({ min: 9, max: 22 }).map((last) => `10.77.0.${last}`);

type Act =
  | { readonly kind: 'join' | 'discover' | 'select' | 'extend' | 'reboot' | 'release' | 'decline' }
  /** Asks for an address that it was never given. */
  | { readonly kind: 'claim'; readonly address: string; readonly select: boolean }
  | { readonly kind: 'wait'; readonly seconds: number }
  | { readonly kind: 'restart' }
  | { readonly kind: 'learn' };

const act: fc.Arbitrary<Act> = fc.oneof(
  { weight: 5, arbitrary: fc.record({ kind: fc.constant('join' as const) }) },
  {
    weight: 5,
    arbitrary: fc.record({
      kind: fc.constantFrom('discover', 'select', 'extend', 'reboot', 'release', 'decline'),
    }),
  },
  fc.record({ kind: fc.constant('claim' as const), address: anyAddress, select: fc.boolean() }),
  fc.record({
    kind: fc.constant('wait' as const),
    seconds: fc.oneof(fc.nat(90), fc.nat(3 * leaseSeconds)),
  }),
  fc.record({ kind: fc.constant('restart' as const) }),
  { weight: 2, arbitrary: fc.record({ kind: fc.constant('learn' as const) }) },
);

class Clients {
  readonly site = new TestSite(plan, macs.slice(0, 3));
  readonly #clients = new Map<string, Client>(macs.map((one) => [one, { useUntilMs: new Map() }]));

  run(mac: string, one: Act): void {
    const client = this.#clients.get(mac);
    if (client === undefined) throw new Error(`no client ${mac}`);
    switch (one.kind) {
      case 'join':
        this.#hear(mac, client, { type: 'discover' });
        return this.#request(mac, client, client.offered, true);
      case 'discover':
        return this.#hear(mac, client, { type: 'discover' });
      case 'select':
        return this.#request(mac, client, client.offered, true);
      case 'claim':
        return this.#request(mac, client, one.address, one.select);
      case 'reboot':
        return this.#request(mac, client, client.address, false);
      case 'extend':
        if (client.address === undefined) return;
        return this.#hear(mac, client, { type: 'request', clientAddress: client.address });
      case 'release':
      case 'decline':
        return this.#leave(mac, client, one.kind);
      case 'wait':
        this.site.nowMs += one.seconds * 1_000;
        return;
      case 'restart':
        return this.site.restart();
      case 'learn':
        if (!this.site.known.delete(mac)) this.site.known.add(mac);
    }
  }

  /** Addresses in use now, each as often as there are clients that may use it. */
  inUse(): string[] {
    return [...this.#clients.values()].flatMap(({ useUntilMs }) =>
      [...useUntilMs].flatMap(([address, untilMs]) => (untilMs > this.site.nowMs ? [address] : [])),
    );
  }

  #request(mac: string, client: Client, requested: string | undefined, select: boolean): void {
    if (requested === undefined) return;
    const server = select ? { server: serverAddress } : {};
    this.#hear(mac, client, { type: 'request', requested, ...server });
  }

  #leave(mac: string, client: Client, type: 'release' | 'decline'): void {
    const { address } = client;
    if (address === undefined) return;
    delete client.address;
    client.useUntilMs.delete(address);
    const which = type === 'release' ? { clientAddress: address } : { requested: address };
    this.#hear(mac, client, { type, server: serverAddress, ...which });
  }

  #hear(mac: string, client: Client, message: Message): void {
    const packet: DhcpPacket | undefined = this.site.say(mac, message).reply?.packet;
    if (packet === undefined) return;
    const address = packet.yourAddress;
    switch (typeOf(packet)) {
      case 'offer':
        client.offered = address;
        return;
      case 'ack':
        client.address = address;
        client.useUntilMs.set(address, this.site.nowMs + leaseSeconds * 1_000);
        return;
      default:
        // A refused client takes no address for its own; but it may release the old one late.
        delete client.address;
    }
  }
}

const history = fc.array(fc.tuple(fc.constantFrom(...macs), act), {
  minLength: 30,
  maxLength: 120,
  size: 'max',
});

test('no address is ever in use by two clients, whatever they do and whenever we restart', () => {
  fc.assert(
    fc.property(history, (acts) => {
      const clients = new Clients();
      for (const [mac, one] of acts) {
        clients.run(mac, one);
        const used = clients.inUse();
        expect(new Set(used).size).toBe(used.length);
      }
    }),
    { numRuns: 400 },
  );
});

test('a known host keeps its address through restarts and years, whoever comes and goes', () => {
  const host = macs[1] ?? '';
  const others = macs.filter((one) => one !== host);
  const acts = fc.array(fc.tuple(fc.constantFrom(...others), act), { maxLength: 60 });
  fc.assert(
    fc.property(acts, fc.boolean(), (done, restarts) => {
      const clients = new Clients();
      const address = clients.site.lease(host);
      for (const [mac, one] of done) {
        clients.run(mac, one);
        if (restarts) clients.site.restart();
      }
      clients.site.nowMs += 5 * 365 * 86_400_000;
      clients.site.restart();
      expect(clients.site.lease(host)).toBe(address);
    }),
    { numRuns: 300 },
  );
});

test('most hosts get the same address again even from an empty book, in whatever order', () => {
  const range = { first: dottedAddress(0x0a4d_0001 + 9), last: dottedAddress(0x0a4d_0001 + 200) };
  const hosts = Array.from({ length: 40 }, (_, index) => `52:54:00:77:01:${10 + index}`);
  const settings = { network: '10.77.0.0/24', reservations: [], range };
  const first = new TestSite(settings, hosts);
  const second = new TestSite(settings, hosts);
  const addresses = new Map(hosts.map((one) => [one, first.lease(one)]));
  const same = hosts.toReversed().filter((one) => second.lease(one) === addresses.get(one));
  expect(same.length).toBeGreaterThan(28);
});
