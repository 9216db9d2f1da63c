/**
 * An iSCSI target with one logical unit (RFC 7143): login without authentication, no digests, one
 * connection a session, data in order, error recovery level 0.
 *
 * 1. Data for a write come with the command as far as the initiator likes, the rest by one R2T
 *    after the other.
 * 2. When the last initiator goes, the machine has lost its power, and the medium is told.
 */
import { createServer, type Socket } from 'node:net';
import { createByteQueue } from './byte-queue.ts';
import type { ScsiDisk } from './scsi-disk.ts';

const HEADER_BYTES = 48;
const SEGMENT_BYTES_MAX = 256 * 1024;
const COMMANDS_AHEAD = 32;
const NO_TAG = 0xffff_ffff;

const REQUEST = {
  nopOut: 0x00,
  command: 0x01,
  task: 0x02,
  login: 0x03,
  dataOut: 0x05,
  logout: 0x06,
} as const;
const RESPONSE = {
  nopIn: 0x20,
  command: 0x21,
  task: 0x22,
  login: 0x23,
  dataIn: 0x25,
  logout: 0x26,
  readyToTransfer: 0x31,
  reject: 0x3f,
} as const;
const FINAL = 0x80;
const REJECT_NOT_SUPPORTED = 0x05;

/** What the target answers to each key that an initiator may negotiate. */
const NEGOTIATED: Readonly<Record<string, string>> = {
  AuthMethod: 'None',
  HeaderDigest: 'None',
  DataDigest: 'None',
  MaxConnections: '1',
  InitialR2T: 'Yes',
  ImmediateData: 'Yes',
  MaxBurstLength: String(SEGMENT_BYTES_MAX),
  FirstBurstLength: String(SEGMENT_BYTES_MAX),
  DefaultTime2Wait: '0',
  DefaultTime2Retain: '0',
  MaxOutstandingR2T: '1',
  DataPDUInOrder: 'Yes',
  DataSequenceInOrder: 'Yes',
  ErrorRecoveryLevel: '0',
  IFMarker: 'No',
  OFMarker: 'No',
};

/** A running target. */
export interface IscsiTarget {
  readonly complaints: readonly string[];
  close(): Promise<void>;
}

interface Pdu {
  readonly header: Buffer;
  readonly segment: Buffer;
}

interface Session {
  readonly socket: Socket;
  readonly disk: ScsiDisk;
  /** Next PDU; undefined when the initiator is gone. */
  next(): Promise<Pdu | undefined>;
  statSn: number;
  expectedCmdSn: number;
  /** The initiator takes no more in one PDU. */
  segmentBytesMax: number;
}

/** Listens on a unix socket, or wherever `listen` of a server takes. */
export async function startIscsiTarget(options: {
  readonly path: string;
  readonly disk: ScsiDisk;
  readonly powerOff: () => void;
}): Promise<IscsiTarget> {
  const sockets = new Set<Socket>();
  const complaints: string[] = [];
  const server = createServer((socket) => {
    sockets.add(socket);
    socket.once('close', () => {
      sockets.delete(socket);
      if (sockets.size === 0) options.powerOff();
    });
    serve(socket, options.disk)
      .catch((error: unknown) => void complaints.push(String(error)))
      .finally(() => socket.destroy());
  });
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject);
    server.listen(options.path, resolve);
  });
  return {
    complaints,
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        for (const socket of sockets) socket.destroy();
      }),
  };
}

async function serve(socket: Socket, disk: ScsiDisk): Promise<void> {
  const take = createByteQueue(socket);
  const next = async (): Promise<Pdu | undefined> => {
    const header = await take(HEADER_BYTES);
    if (header === undefined) return undefined;
    const extra = header.readUInt8(4) * 4;
    const length = header.readUIntBE(5, 3);
    if (length > SEGMENT_BYTES_MAX) throw new Error(`a segment of ${length} bytes`);
    const rest = await take(extra + Math.ceil(length / 4) * 4);
    return rest === undefined
      ? undefined
      : { header, segment: rest.subarray(extra, extra + length) };
  };
  const session: Session = {
    socket,
    disk,
    next,
    statSn: 1,
    expectedCmdSn: 1,
    segmentBytesMax: 8192,
  };
  for (let pdu = await next(); pdu !== undefined; pdu = await next()) {
    if (!(await answer(session, pdu))) return;
  }
}

/** False: the connection ends. */
async function answer(session: Session, pdu: Pdu): Promise<boolean> {
  const { header } = pdu;
  const isImmediate = (header.readUInt8(0) & 0x40) !== 0;
  const request = header.readUInt8(0) & 0x3f;
  const cmdSn = header.readUInt32BE(24);
  if (request === REQUEST.login) session.expectedCmdSn = cmdSn;
  else if (!isImmediate && request !== REQUEST.dataOut) session.expectedCmdSn = (cmdSn + 1) >>> 0;
  switch (request) {
    case REQUEST.login:
      logIn(session, pdu);
      return true;
    case REQUEST.command:
      return await command(session, pdu);
    case REQUEST.nopOut:
      if (header.readUInt32BE(16) !== NO_TAG) {
        const reply = replyTo(session, header, RESPONSE.nopIn);
        reply.writeUInt32BE(NO_TAG, 20);
        send(session, reply, pdu.segment);
      }
      return true;
    case REQUEST.task:
      send(session, replyTo(session, header, RESPONSE.task));
      return true;
    case REQUEST.logout:
      send(session, replyTo(session, header, RESPONSE.logout));
      return false;
    default: {
      const reply = replyTo(session, header, RESPONSE.reject);
      reply.writeUInt8(REJECT_NOT_SUPPORTED, 2);
      reply.writeUInt32BE(NO_TAG, 16);
      send(session, reply, header);
      return true;
    }
  }
}

/** A response with the initiator's tag and the next status number. */
function replyTo(session: Session, request: Buffer, response: number): Buffer {
  const header = headerFor(session, request, response);
  header.writeUInt32BE(session.statSn, 24);
  session.statSn = (session.statSn + 1) >>> 0;
  return header;
}

/** The same without taking a status number. */
function headerFor(session: Session, request: Buffer, response: number): Buffer {
  const header = Buffer.alloc(HEADER_BYTES);
  header.writeUInt8(response, 0);
  header.writeUInt8(FINAL, 1);
  request.copy(header, 16, 16, 20);
  header.writeUInt32BE(session.statSn, 24);
  header.writeUInt32BE(session.expectedCmdSn, 28);
  header.writeUInt32BE((session.expectedCmdSn + COMMANDS_AHEAD) >>> 0, 32);
  return header;
}

function send({ socket }: Session, header: Buffer, segment: Buffer = Buffer.alloc(0)): void {
  header.writeUIntBE(segment.length, 5, 3);
  socket.write(Buffer.concat([header, segment, Buffer.alloc((4 - (segment.length % 4)) % 4)]));
}

function logIn(session: Session, { header, segment }: Pdu): void {
  const asked = new Map<string, string>();
  for (const pair of segment.toString('latin1').split('\0').filter(Boolean)) {
    const [key = '', ...value] = pair.split('=');
    asked.set(key, value.join('='));
  }
  session.segmentBytesMax = Math.min(
    SEGMENT_BYTES_MAX,
    Number(asked.get('MaxRecvDataSegmentLength') ?? session.segmentBytesMax),
  );
  const answers = [...asked.keys()].flatMap((key) => {
    const value = NEGOTIATED[key];
    return value === undefined ? [] : [`${key}=${value}`];
  });
  if (asked.has('TargetName')) answers.push('TargetPortalGroupTag=1');
  if (asked.has('MaxRecvDataSegmentLength')) {
    answers.push(`MaxRecvDataSegmentLength=${SEGMENT_BYTES_MAX}`);
  }
  const reply = replyTo(session, header, RESPONSE.login);
  reply.writeUInt8(header.readUInt8(1), 1); // goes on to the stage that the initiator asks for
  header.copy(reply, 8, 8, 14); // its part of the session's name
  const isLast = (header.readUInt8(1) & 0x83) === 0x83;
  reply.writeUInt16BE(isLast ? 1 : 0, 14);
  send(session, reply, Buffer.from(answers.map((one) => `${one}\0`).join(''), 'latin1'));
}

async function command(session: Session, { header, segment }: Pdu): Promise<boolean> {
  const cdb = header.subarray(32, 48);
  const dataOut = await collect(session, header, segment);
  if (dataOut === undefined) return false;
  const result = session.disk.execute(cdb, dataOut);
  const isRead = (header.readUInt8(1) & 0x40) !== 0;
  const expected = header.readUInt32BE(20);
  const bytes = isRead ? result.bytes.subarray(0, expected) : Buffer.alloc(0);
  let dataSn = 0;
  for (let at = 0; at < bytes.length; at += session.segmentBytesMax) {
    const part = bytes.subarray(at, at + session.segmentBytesMax);
    const data = headerFor(session, header, RESPONSE.dataIn);
    data.writeUInt8(at + part.length === bytes.length ? FINAL : 0, 1);
    data.writeUInt32BE(NO_TAG, 20);
    data.writeUInt32BE(0, 24); // without status no number of one
    data.writeUInt32BE(dataSn, 36);
    data.writeUInt32BE(at, 40);
    send(session, data, part);
    dataSn += 1;
  }
  const reply = replyTo(session, header, RESPONSE.command);
  const moved = isRead ? bytes.length : dataOut.length;
  const left = Math.max(0, expected - moved);
  reply.writeUInt8(left > 0 ? FINAL | 0x02 : FINAL, 1); // underflow
  reply.writeUInt8(result.status, 3);
  reply.writeUInt32BE(dataSn, 36);
  reply.writeUInt32BE(left, 44);
  const length = Buffer.alloc(2);
  length.writeUInt16BE(result.sense.length, 0);
  send(
    session,
    reply,
    result.sense.length === 0 ? Buffer.alloc(0) : Buffer.concat([length, result.sense]),
  );
  return true;
}

/** All data of a write; undefined when the initiator is gone. */
async function collect(
  session: Session,
  header: Buffer,
  first: Buffer,
): Promise<Buffer | undefined> {
  if ((header.readUInt8(1) & 0x20) === 0) return Buffer.alloc(0);
  const expected = Math.min(
    header.readUInt32BE(20),
    session.disk.dataOutBytes(header.subarray(32, 48)),
  );
  const data = Buffer.alloc(expected);
  let have = first.copy(data);
  const tag = header.readUInt32BE(16);
  for (let round = 0; have < expected; round += 1) {
    const wanted = Math.min(SEGMENT_BYTES_MAX, expected - have);
    const ready = headerFor(session, header, RESPONSE.readyToTransfer);
    ready.writeUInt32BE(tag, 20);
    ready.writeUInt32BE(round, 36);
    ready.writeUInt32BE(have, 40);
    ready.writeUInt32BE(wanted, 44);
    send(session, ready);
    for (const end = have + wanted; have < end; ) {
      const pdu = await session.next();
      if (pdu === undefined) return undefined;
      const isOurs =
        (pdu.header.readUInt8(0) & 0x3f) === REQUEST.dataOut && pdu.header.readUInt32BE(16) === tag;
      // Other commands may come between; they are answered once this one is through.
      if (isOurs) have += pdu.segment.copy(data, pdu.header.readUInt32BE(40));
      else if (!(await answer(session, pdu))) return undefined;
    }
  }
  return data;
}
