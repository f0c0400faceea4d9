/** All that is needed of the package, which comes without types. */
declare module 'ws' {
  export class WebSocket {
    constructor(address: string)
    once(event: 'open', listener: () => void): this
    pause(): void
    resume(): void
  }
}
