/** Names of the stream protocols; see docs/protocol-network.md. */
export const edgeProtocol = '/admb/edge/1'
export const fetchProtocol = '/admb/fetch/1'
export const catchUpProtocol = '/admb/greet/1'
