/** What this agent calls itself towards the control plane. */
export const agentVersion = '0.1.0';
