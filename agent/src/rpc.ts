/**
 * What the agent takes of gRPC, to be imported when it is needed. Of a whole package that is
 * imported so, a bundle keeps everything: the messages of all of the operators' services would be
 * read at each start.
 */
export {
  connect,
  createClient,
  fetchPinnedCertificate,
  lookAtServer,
  serve,
} from '@rackwright/rpc';
