/**
 * The programs' environment as interfaces. Nothing here touches the machine; `node/` does,
 * `@rackwright/sim` simulates it on one event heap. Code outside those two takes these as
 * arguments.
 */

export { isAbsent } from './absent.ts';
export { BoundedQueue, type QueueLimits } from './bounded-queue.ts';
export { Bucket, type BucketRate, Buckets } from './bucket.ts';
export { networkOf } from './caller-network.ts';
export type { Cancel, Clock } from './clock.ts';
export {
  ConfigError,
  type ConfigProblem,
  ConfigReader,
  nearestName,
  problemText,
  readConfiguration,
} from './config-reader.ts';
export { type ContentRange, parseContentRange } from './content-range.ts';
export type { CrashPoint } from './crash-point.ts';
export type { AppendFile, Disk, FileStat } from './disk.ts';
export { errorText } from './error-text.ts';
export { type Exec, type ExecRequest, type ExecResult, firstInheritedDescriptor } from './exec.ts';
export type { Hashes, RunningHash } from './hashes.ts';
export type {
  FileSlice,
  Http,
  HttpListen,
  HttpRequest,
  HttpResponse,
  HttpServer,
} from './http.ts';
export type {
  HttpClient,
  HttpsLimits,
  HttpsOutcome,
  HttpsPeer,
  HttpsRequest,
  HttpsTarget,
} from './https-client.ts';
export {
  type Address,
  entriesNaming,
  internalAddress,
  internalEntryProblem,
  mayBeReached,
  readAddress,
} from './internal-address.ts';
export { parsedJson } from './json.ts';
export type { LargeFile, LargeFiles, PartFile } from './large-files.ts';
export type { LocalCalls, LocalListener, ReleasableAnswer } from './local-calls.ts';
export type { Log, LogFields } from './log.ts';
export type { NameAnswer, Names } from './names.ts';
export { nodeVersionProblem } from './node-version.ts';
export { pause } from './pause.ts';
export type { ProcessFigures } from './process-figures.ts';
export { type Random, randomId } from './random.ts';
export { invalid, problemIn, type Read, valid } from './read.ts';
export { abandon, markHandled, whenSettled } from './rejections.ts';
export type { Supervision } from './supervision.ts';
export type { TreeBounds, TreeEntry } from './tree.ts';
export type {
  Udp,
  UdpBind,
  UdpConnect,
  UdpConnection,
  UdpConnectionHandlers,
  UdpHandlers,
  UdpParts,
  UdpPeer,
  UdpSocket,
} from './udp.ts';
export { Waits } from './waits.ts';
export { atWallTime } from './wall-time.ts';
export {
  type WebAnswer,
  WebBroken,
  type WebClient,
  type WebFloor,
  type WebLimits,
  type WebOutcome,
  type WebRequest,
  WebTooSlow,
} from './web-client.ts';
