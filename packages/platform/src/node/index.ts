/**
 * The platform interfaces on the machine that we run on. The only place that touches sockets,
 * files, timers, the clock and chance; only `main.ts` files and tests of real things import it.
 */
export { type ClockSources, nodeClock } from './clock.ts';
export { keepCompiled } from './compile-cache.ts';
export { type ArmedCrash, makeCrashPoint, makeFileCrashPoint } from './crash-point.ts';
export { nodeDisk } from './disk.ts';
export { type ExecGroup, nodeExec } from './exec.ts';
export { type FailedStarts, nodeFailedStarts } from './failed-starts.ts';
export { type FolderBounds, nodeFolderFiles } from './folder-files.ts';
export { callersHashes, nodeHashes } from './hashes.ts';
export { type InheritedSockets, inheritedDescriptors, openInherited } from './inherited.ts';
export { nodeLargeFiles } from './large-files.ts';
export { nodeLocalCalls } from './local-calls.ts';
export { type LogLevel, nodeLog } from './log.ts';
export { nodeNames } from './names.ts';
export {
  guardedWebClient,
  loadHttp,
  nodeHttp,
  nodeHttpClient,
  nodeWebClient,
} from './on-demand.ts';
export { nodeOwnAddresses } from './own-addresses.ts';
export { nodeProcessFigures } from './process-figures.ts';
export { nodeRandom } from './random.ts';
export { nodeReadTree } from './read-tree.ts';
export { nodeSupervision } from './supervision.ts';
export { nodeUdp } from './udp.ts';
export { nodeUserFiles, type UserFiles } from './user-files.ts';
