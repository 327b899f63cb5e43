"""What a policy would earn, from the data of another one: estimators and their diagnostics."""
