/** For tests and benchmarks of code above the store. */
export {
  type ClusterOptions,
  NATS_PROGRAM,
  NatsCluster,
  SYSTEM_USER,
  serverMissing,
} from './nats-cluster.ts';
export { type Consumed, publishedBeside } from './published.ts';
