/** Messages of rackwright.agent.v1, generated from proto/. */
export * from './gen/rackwright/agent/v1/enrolment_pb.ts';
export * from './gen/rackwright/agent/v1/journal_pb.ts';
export * from './gen/rackwright/agent/v1/operation_pb.ts';
export * from './gen/rackwright/agent/v1/report_pb.ts';
export * from './gen/rackwright/agent/v1/session_pb.ts';
