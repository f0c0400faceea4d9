/** Builds and runs selected tests in child processes. */
import { spawn } from 'node:child_process'
import type { Selection } from './select.js'

const TSC = ['node_modules/typescript/bin/tsc', '--build', 'tsconfig.json', 'src/page/browser/tsconfig.json']
const MOCHA = 'node_modules/mocha/bin/mocha.js'

/** Compiles and bundles what has changed. @returns the exit code */
export async function compile(): Promise<number> {
  return (await run(TSC)) || (await run(['dist/scripts/build-program.js']))
}

/** Runs the selected tests. @returns the exit code */
export function runTests({ files, grep }: Selection): Promise<number> {
  const compiled = files.map(file => `dist/${file.replace(/\.ts$/, '.js')}`)
  const limits = grep === undefined ? [] : ['--grep', grep]
  return run([MOCHA, '--no-config', '--timeout', '60000', ...limits, ...compiled])
}

function run(args: readonly string[]): Promise<number> {
  return new Promise((resolve, reject) => {
    const child = spawn(process.execPath, args, { stdio: 'inherit' })
    child.once('error', reject)
    child.once('close', code => resolve(code ?? 1))
  })
}
