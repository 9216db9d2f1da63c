/** Messages of rackwright.runner.v1, generated from proto/. */
export * from './gen/rackwright/runner/v1/runner_pb.ts';
