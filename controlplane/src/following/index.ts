export { type Follower, Following, type FollowingDependencies } from './following.ts';
