/** google.rpc: the details of a refused call beside its code. */
export * from './gen/google/rpc/code_pb.ts';
export * from './gen/google/rpc/error_details_pb.ts';
export * from './gen/google/rpc/status_pb.ts';
