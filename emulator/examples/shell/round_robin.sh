#!/bin/sh
# Round robin as a program of volary's protocol in plain shell: each task that needs a node gets the next one.

next=0
orders=

# Adds the launch of a task on the next node.
launch() {
  orders="$orders,{\"do\":\"launch\",\"job\":$1,\"task\":$2,\"node\":$((next % nodes))}"
  next=$((next + 1))
}

while IFS= read -r line; do
  case $line in '{"hello":'*)
    nodes=${line#*'"nodes":'}
    nodes=${nodes%%,*}
    echo '{"hello":{"protocol":1,"level":"central"}}'
    continue
  esac
  orders=
  while [ "$line" != "${line#*'"event":'}" ]; do
    line=${line#*'"event":'}
    job=${line#*'"job":'}
    job=${job%%,*}
    case $line in
    '"job",'*)
      tasks=${line#*'"tasks":'}
      tasks=${tasks%%,*}
      task=0
      while [ "$task" -lt "$tasks" ]; do
        launch "$job" "$task"
        task=$((task + 1))
      done
      ;;
    '"ready",'*)
      task=${line#*'"task":'}
      launch "$job" "${task%%,*}"
      ;;
    esac
  done
  echo "{\"do\":[${orders#,}]}"
done
