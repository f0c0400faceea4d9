/** What is used of `ws`, which comes without types: a WebSocket for Node 20, and the sockets of libp2p's listener. */
declare module 'ws' {
  export class WebSocket {
    constructor(address: string)
    once(event: 'open', listener: () => void): this
    on(event: 'error', listener: (error: Error) => void): this
    pause(): void
    resume(): void
    terminate(): void
    send(data: string): void
    close(code?: number, reason?: string): void
    addEventListener(type: string, listener: (event: unknown) => void): void
  }
}
