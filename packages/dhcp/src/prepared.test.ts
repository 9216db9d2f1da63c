/** A server that remembers questions answers, byte for byte, like one that remembers nothing. */
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { dhcpOption, writeOption } from './options.ts';
import { decodeDhcp, encodeDhcp } from './packet.ts';
import { encodeAnswer } from './prepared.ts';
import { QuestionMemory, transactionIdOf } from './question-memory.ts';
import { LeaseBook } from './server/lease-book.ts';
import { readServerRequest, type ServerRequest } from './server/request.ts';
import { type GrantedBefore, type ServerDecision, serve } from './server/serve.ts';
import { mac, packetOf, planOf, serverAddress, settingsOf, usualPlan } from './server/test-site.ts';

interface Question {
  readonly request: ServerRequest;
  readonly granted: Map<string, GrantedBefore>;
}

interface Moment {
  readonly nowMs: number;
  readonly quiet: boolean;
  readonly known: ReadonlySet<string>;
  readonly permission: 'runner' | 'localBoot' | 'unknownHost';
  readonly loaders: { readonly uefiX64?: string } | undefined;
}

const settings = settingsOf(planOf(usualPlan));
const from = { address: '0.0.0.0', port: 68 };

/** With a memory or without; tells the bytes that it sends. */
class Server {
  readonly book = new LeaseBook();
  readonly memory: QuestionMemory<Question> | undefined;
  known = 0;

  constructor(memory?: QuestionMemory<Question>) {
    this.memory = memory;
  }

  hear(datagram: Uint8Array, moment: Moment) {
    const found = this.memory?.find(datagram);
    if (found !== undefined) this.known += 1;
    const question = found ?? this.#read(datagram);
    const isKnown = (one: string): boolean => moment.known.has(one);
    const { granted, request } = question;
    const state = { ...moment, book: this.book, isKnown };
    const remembering = this.memory === undefined ? state : { ...state, granted };
    const decision = serve(request, remembering, {
      ...settings,
      loadersOf: () => moment.loaders,
    });
    this.book.apply(decision.changes);
    if (found === undefined) this.memory?.keep(datagram, question);
    return told(decision, datagram);
  }

  #read(datagram: Uint8Array): Question {
    const read = readServerRequest(decodeDhcp(datagram), from);
    if (read.kind !== 'asked') throw new Error(`not asked: ${JSON.stringify(read)}`);
    return { request: read.request, granted: new Map() };
  }
}

function told({ reply, changes, notice, reason }: ServerDecision, datagram: Uint8Array) {
  const bytes = reply && encodeAnswer(reply.packet, transactionIdOf(datagram));
  return { bytes, to: reply?.to, changes, notice, reason };
}

const someone = fc.constantFrom(mac.one, mac.two, mac.reserved, mac.stranger);
const packet = fc
  .record({
    whose: someone,
    type: fc.constantFrom('discover', 'request', 'decline', 'release'),
    requested: fc.constantFrom('10.77.0.50', '10.77.0.51', '10.77.0.52', '10.77.0.201', undefined),
    server: fc.constantFrom(serverAddress, serverAddress, '10.77.0.2', undefined),
    clientAddress: fc.constantFrom('0.0.0.0', '0.0.0.0', '10.77.0.51'),
    vendorClass: fc.constantFrom('PXEClient:Arch:00007', 'HTTPClient:Arch:00016', undefined),
  })
  .map(({ whose, vendorClass, requested, server, ...fields }) => {
    const more =
      vendorClass === undefined ? [] : [writeOption(dhcpOption.vendorClass, vendorClass)];
    const named = {
      ...(requested === undefined ? {} : { requested }),
      ...(server === undefined ? {} : { server }),
    };
    return encodeDhcp(packetOf(whose, { ...fields, ...named, more }));
  });

const moment = fc.record({
  afterMs: fc.constantFrom(0, 1_000, 4_000_000),
  quiet: fc.constantFrom(false, false, false, true),
  known: fc.subarray([mac.one, mac.two]).map((some) => new Set(some)),
  permission: fc.constantFrom('runner' as const, 'localBoot' as const, 'unknownHost' as const),
  loaders: fc.constantFrom({ uefiX64: 'one.efi' }, { uefiX64: 'two.efi' }, {}, undefined),
});

/** Few clients with few questions each: they ask again and again. */
const rack = fc.record({
  packets: fc.array(packet, { minLength: 3, maxLength: 6 }),
  asked: fc.array(fc.tuple(fc.nat(), fc.nat(0xffff_ffff), moment), { maxLength: 60 }),
});

/** Undefined when the packet asks for nothing, and so is never remembered. */
function heard(server: Server, datagram: Uint8Array, now: Moment) {
  return readServerRequest(decodeDhcp(datagram), from).kind === 'asked'
    ? server.hear(datagram, now)
    : undefined;
}

test('a remembered question gets the same answer as a new one', () => {
  let known = 0;
  fc.assert(
    fc.property(rack, ({ packets, asked }) => {
      const [plain, remembering] = [new Server(), new Server(new QuestionMemory(4))];
      let nowMs = 1_700_000_000_000;
      for (const [index, transactionId, { afterMs, ...now }] of asked) {
        nowMs += afterMs;
        const datagram = packets[index % packets.length]?.slice() ?? new Uint8Array();
        new DataView(datagram.buffer).setUint32(4, transactionId);
        const expected = heard(plain, datagram, { ...now, nowMs });
        expect(heard(remembering, datagram, { ...now, nowMs })).toEqual(expected);
      }
      known += remembering.known;
    }),
    { numRuns: 300 },
  );
  expect(known).toBeGreaterThan(100);
});

test('an answer that is sent can be changed by nobody, and tells its own transaction', () => {
  const answer = packetOf(mac.one, { type: 'offer', transactionId: 1 });
  const first = encodeAnswer(answer, 0xffff_fffe);
  first.fill(0);
  const second = encodeAnswer(answer, 2 ** 31 + 5);
  expect(decodeDhcp(second)).toEqual({ ...answer, transactionId: 2 ** 31 + 5 });
});
