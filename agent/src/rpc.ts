/**
 * The agent's imports from gRPC, to be loaded on demand. When a whole package is imported so, a
 * bundle keeps everything: it would read the messages of all of the operators' services at each
 * start.
 */
export {
  connect,
  createClient,
  fetchPinnedCertificate,
  probeServer,
  serve,
  sessionKeepalive,
} from '@rackwright/rpc';
