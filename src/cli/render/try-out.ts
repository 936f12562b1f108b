/**
 * Lines to copy, for somebody who has just started a service.
 */

export function tryOutLines(address: string): readonly string[] {
  return [
    'With this program, in other terminals:',
    `  reeve work --address ${address} --kind agent --exec 'read -r claim; echo "$claim" >&2'`,
    `  reeve submit agent --address ${address} --args '{"name":"Ada"}' --wait`,
    `  reeve list --address ${address}`,
    '',
    'With grpcurl, which needs nothing but the address:',
    ...grpcurlLines(address, '<task-id>').map((line) => `  ${line}`),
  ];
}

export function grpcurlLines(address: string, taskId: string): readonly string[] {
  const submission = {
    action_kind: 'agent',
    execution_target: 'EXECUTION_TARGET_HOST',
    idempotency_key: 'try-1',
    args: { name: 'Ada' },
  };
  return [
    `grpcurl -plaintext ${address} list`,
    `grpcurl -plaintext ${address} describe reeve.v1.TaskService`,
    `grpcurl -plaintext -d '${JSON.stringify(submission)}' ${address} reeve.v1.TaskService/Submit`,
    `grpcurl -plaintext -d '{"page_size":5}' ${address} reeve.v1.TaskService/List`,
    `grpcurl -plaintext -d '{"task_id":"${taskId}"}' ${address} reeve.v1.TaskService/ListEvents`,
  ];
}
